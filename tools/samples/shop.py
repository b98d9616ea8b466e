"""What the tools of the invented shop answer: orders, payments, parcels, slots, stock."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from samples.run import Dice

HERE = Path(__file__).parent
CUSTOMER = "cus_8f31kq20"
ORDER = "HH-261008-5176"
SERIAL = "BRV-870S-0264417"
SKU = "ESP-BRV-870-SS"
HOME, OFFICE = "adr_h7m2c9", "adr_w4k8s1"
CARD, ALIPAY, WECHAT = "pm_6t4cuna2", "pm_9ali3x7d", "pm_2wxp8k5r"
LINE_MACHINE, LINE_WARRANTY = "li_51760001", "li_51760003"
METHODS = {"unionpay_credit": CARD, "alipay": ALIPAY, "wechat_pay": WECHAT}
SHIPMENT, TRACKING = "shp_3c9v7t1e", "SF1549082277316"
PAYMENT_GOODS, PAYMENT_FEE = "txn_c4w8r2m6h1", "txn_k7d3p9x2v5"
PAYMENT_DOUBLE = "txn_b2n6s8q4j9"
AUTH_FEE = "620417"
TODAY = date(2026, 11, 12)

CATALOGUE = (
    ("KNF-CER-160", "陶瓷水果刀 16 cm", 16900),
    ("CAS-ENM-240", "Enamel casserole 24 cm, ink blue", 89900),
    ("KTL-GSN-900", "Gooseneck kettle 0.9 l, matte white", 45900),
    ("ESP-CPN-5520", "胶囊咖啡机 CPN 5520", 129900),
    ("BRD-HNK-420", "扁柏砧板 42 cm", 25900),
    ("FLT-WTR-CT2", "净水滤芯 两支装", 17800),
    ("TWL-LIN-3PK", "Linen tea towels, set of 3", 11900),
    ("PAN-CST-280", "Cast-iron pan 28 cm", 52900),
    ("BWL-STN-6PC", "粗陶饭碗 六只装", 23800),
    ("SCL-DRP-2KG", "Drip scale 2 kg / 0.1 g", 32900),
    ("BEA-YRG-250", "耶加雪菲咖啡豆 250 g", 9800),
    ("GLS-DBL-2PC", "Double-wall glasses, pair", 13900),
    ("STM-BMB-220", "竹蒸笼 22 cm 双层", 15800),
    ("APR-CNV-ONE", "Canvas apron, moss", 19900),
    ("JAR-GLS-1L4", "密封罐 1 L 四只装", 12900),
    ("THR-PRB-PRO", "Probe thermometer Pro", 27900),
)


def money(fen: int) -> str:
    """Render an amount in fen as yuan with two decimals."""
    return f"{fen // 100}.{fen % 100:02d}"


def customer() -> dict[str, Any]:
    """Give the account, as `find_customer` answers."""
    return {
        "customer_id": CUSTOMER,
        "name": {"display": "林玥", "latin": "Lin Yue"},
        "email": "lin.yue@muye-design.example",
        "phones": [
            {"phone_id": "ph_01", "number": "+86 138 1642 7093", "verified": True},
            {"phone_id": "ph_02", "number": "+86 21 5424 8012", "verified": False},
        ],
        "membership": {"tier": "gold", "since": "2026-05-06", "points": 7320},
        "locale": "zh-CN",
        "addresses": [
            _address(HOME, "家", "上海市徐汇区永嘉路 388 弄 6 号 402 室", "200031"),
            _address(
                OFFICE, "公司", "上海市徐汇区漕河泾开发区田林路 142 号 7 幢 3 层前台", "200233"
            ),
            _address("adr_p9d3x5", "父母家", "江苏省苏州市姑苏区十全街 257 号", "215006"),
        ],
        "payment_methods": [
            _method(CARD, "unionpay_credit", "UnionPay ending 4471", "CUP-C"),
            _method(ALIPAY, "alipay", "138****7093", "ALI-ORIG"),
            _method(WECHAT, "wechat_pay", "零钱", "WX-ORIG"),
        ],
        "delegates": [
            {
                "delegate_id": "dlg_70f2",
                "name": "Daniel Hsu",
                "relation": "spouse",
                "phone": "+86 139 1770 6052",
                "scopes": ["returns_and_pickups"],
                "added": "2026-02-03",
            }
        ],
        "risk": {"band": "low", "refunds_90_days": "0.00", "chargebacks": 0},
    }


def _address(address_id: str, label: str, text: str, postcode: str) -> dict[str, Any]:
    return {
        "address_id": address_id,
        "label": label,
        "text": text,
        "postcode": postcode,
        "pickup_allowed": True,
    }


def _method(method_id: str, kind: str, label: str, route: str) -> dict[str, Any]:
    return {"payment_method_id": method_id, "kind": kind, "label": label, "refund_route": route}


def orders(dice: Dice) -> dict[str, Any]:
    """Give every order since 2025, newest first, as `list_orders` answers."""
    numbers = set(re.findall(r"HH-\d{6}-\d{4}", contacts()))
    while len(numbers) < 46:
        day = date(2025, 1, 4) + timedelta(days=dice.number(0, 670))
        numbers.add(f"HH-{day:%y%m%d}-{dice.number(1000, 9899)}")
    rows = [_order_row(number, dice) for number in sorted(numbers, reverse=True)]
    return {"customer_id": CUSTOMER, "total": len(rows), "orders": rows, "next_page": None}


def _order_row(number: str, dice: Dice) -> dict[str, Any]:
    placed = date.fromisoformat(f"20{number[3:9]}")
    items = [(*dice.pick(CATALOGUE), dice.number(1, 2)) for _ in range(dice.number(1, 3))]
    row = {
        "order_id": number,
        "placed": placed.isoformat(),
        "status": dice.pick(("completed", "completed", "completed", "completed", "reviewed")),
        "delivered": (placed + timedelta(days=dice.number(2, 6))).isoformat(),
        "items": [_item(*item) for item in items],
        "total": money(sum(price * quantity for *_, price, quantity in items)),
        "paid_with": dice.pick(("alipay", "alipay", "unionpay_credit", "wechat_pay")),
        "channel": dice.pick(("app", "app", "web", "mini_program")),
    }
    if number == ORDER:
        lines = order()["lines"][:7]
        row["items"] = [{key: line[key] for key in ("sku", "name", "quantity")} for line in lines]
        row |= {"delivered": "2026-10-11", "total": "7087.00"}
        row |= {"status": "completed", "paid_with": "unionpay_credit"}
    return row


def _item(sku: str, name: str, price: int, quantity: int) -> dict[str, Any]:
    return {"sku": sku, "name": name, "quantity": quantity, "unit_price": money(price)}


def order() -> dict[str, Any]:
    """Give the order that the customer means, as `get_order` answers."""
    lines = [
        _line(1, SKU, "Brava 870 半自动意式咖啡机 不锈钢", 1, 498000, serial=SERIAL),
        _line(2, "GRD-BRV-G2", "Brava G2 锥刀磨豆机", 1, 128000, serial="BRG-G2-1190385"),
        _line(3, "EXT-870-3Y", "Brava 870 延长保修三年", 1, 39900, covers=LINE_MACHINE),
        _line(4, "FLT-BRV-2PK", "Brava 滤芯 两支装", 2, 8900),
        _line(5, "TAB-CLN-20", "Cleaning tablets, 20", 1, 5900),
        _line(6, "KNB-WAL-01", "Knock box, walnut", 1, 13900),
        _line(7, "BEA-YRG-250", "耶加雪菲咖啡豆 250 g", 3, 9800),
        _line(8, "JUG-MLK-350", "Milk jug 350 ml (gift)", 1, 0, gift=True),
    ]
    return {
        "order_id": ORDER,
        "customer_id": CUSTOMER,
        "placed_at": "2026-10-08T21:47:12+08:00",
        "status": "completed",
        "currency": "CNY",
        "lines": lines,
        "discounts": [
            {
                "code": "BNDL-870-G2",
                "label": "咖啡机 + 磨豆机 套装优惠",
                "amount": "-300.00",
                "applies_to": [LINE_MACHINE, "li_51760002"],
            }
        ],
        "delivery": {"method": "large_item_upstairs", "fee": "58.00", "address_id": HOME},
        "totals": {
            "lines": "7329.00",
            "discounts": "-300.00",
            "delivery": "58.00",
            "paid": "7087.00",
        },
        "payments": [PAYMENT_GOODS, PAYMENT_FEE],
        "shipments": [
            {"shipment_id": SHIPMENT, "lines": [1, 2], "delivered": "2026-10-11"},
            {"shipment_id": "shp_8k2m5w0a", "lines": [4, 5, 6, 7, 8], "delivered": "2026-10-12"},
        ],
        "invoice": {"title": "个人", "number": "25317000001904426183", "sent": "2026-10-13"},
        "returns": [],
    }


def _line(
    number: int, sku: str, name: str, quantity: int, price: int, **extra: object
) -> dict[str, Any]:
    return {
        "line_id": f"li_5176{number:04d}",
        "sku": sku,
        "name": name,
        "quantity": quantity,
        "unit_price": money(price),
        "final_sale": False,
        **extra,
    }


def shipment(dice: Dice) -> dict[str, Any]:
    """Give the parcel's way, scan by scan, as `get_shipment` answers."""
    places = (
        ("昆山大件仓", "KS-DC-04", ("已拣货", "已复核称重 14.62 kg", "已打包 木架加固", "已出库")),
        ("昆山中转场", "KS-HUB", ("已到达", "已分拣", "已装车 沪B·7L029", "已发车")),
        ("上海青浦转运中心", "SH-QP", ("已到达", "已卸车", "已安检", "已分拣", "已发车")),
        ("上海徐汇集散点", "SH-XH", ("已到达", "外箱检查 正常", "等待预约", "已装车")),
        (
            "上海永嘉路营业点",
            "SH-YJL",
            ("已到达", "已联系顾客", "派送中", "已到楼下", "已送货上楼"),
        ),
    )
    moment = datetime.fromisoformat("2026-10-09T07:12:00+08:00")
    events = []
    for place, code, scans in places:
        for scan in scans:
            moment += timedelta(minutes=dice.number(18, 260))
            events.append(_scan(moment, place, code, scan, dice))
    signed = datetime.fromisoformat("2026-10-11T10:36:00+08:00")
    events.append(_scan(signed, "上海永嘉路营业点", "SH-YJL", "已签收 本人 开箱验机", dice))
    return {
        "shipment_id": SHIPMENT,
        "tracking_number": TRACKING,
        "carrier": {"code": "SF", "name": "顺丰大件", "service": "大件上楼"},
        "order_id": ORDER,
        "weight_kg": 14.62,
        "proof_of_delivery": {
            "signed_by": "林*",
            "at": signed.isoformat(),
            "photo": "pod_5h2x.jpg",
        },
        "events": events,
    }


def _scan(moment: datetime, place: str, code: str, scan: str, dice: Dice) -> dict[str, Any]:
    return {
        "at": moment.isoformat(),
        "place": place,
        "site": code,
        "event": scan,
        "operator": f"{code}-{dice.number(1001, 1999)}",
    }


def payments(orders_listed: list[dict[str, Any]], dice: Dice) -> dict[str, Any]:
    """Give the payments for the orders listed, newest first, as `list_payments` answers."""
    rows = [_payment("2026-10-13", PAYMENT_DOUBLE, ORDER, "58.00", CARD, dice)]
    for row in orders_listed[:40]:
        day, number, total = row["placed"], row["order_id"], row["total"]
        if number == ORDER:
            rows.append(_payment(day, PAYMENT_FEE, number, "58.00", CARD, dice))
            rows.append(_payment(day, PAYMENT_GOODS, number, "7029.00", CARD, dice))
        else:
            code, method = f"txn_{dice.code(10)}", METHODS[row["paid_with"]]
            rows.append(_payment(day, code, number, total, method, dice))
    rows.sort(key=lambda row: str(row["date"]), reverse=True)
    return {"customer_id": CUSTOMER, "currency": "CNY", "count": len(rows), "payments": rows}


def _payment(
    day: str, number: str, order_id: str, amount: str, method: str, dice: Dice
) -> dict[str, Any]:
    return {
        "transaction_id": number,
        "date": day,
        "order_id": order_id,
        "amount": amount,
        "payment_method_id": method,
        "state": "captured",
        "acquirer_reference": dice.code(12, "0123456789"),
        "statement_text": dice.pick(("港湾生活 网购", "HARBOUR LIVING SH", "港湾生活 小程序")),
    }


def double_capture() -> dict[str, Any]:
    """Give the second capture with its gateway's events, as `get_transaction` answers."""
    events = [
        ("2026-10-08T21:47:31+08:00", "authorise", "58.00", PAYMENT_FEE, "approved"),
        ("2026-10-08T21:47:33+08:00", "capture", "58.00", PAYMENT_FEE, "settled"),
        ("2026-10-13T02:10:04+08:00", "capture", "58.00", PAYMENT_DOUBLE, "settled"),
        ("2026-10-13T02:10:09+08:00", "warning", "58.00", PAYMENT_DOUBLE, "capture exceeds auth"),
    ]
    keys = ("at", "event", "amount", "transaction_id", "outcome")
    return {
        "transaction_id": PAYMENT_DOUBLE,
        "parent": PAYMENT_FEE,
        "order_id": ORDER,
        "amount": "58.00",
        "payment_method_id": CARD,
        "authorisation_code": AUTH_FEE,
        "gateway": {"name": "银联在线", "merchant": "898310148160568", "batch": "20261013-0007"},
        "events": [dict(zip(keys, event, strict=True)) for event in events],
        "refundable": "58.00",
        "refunds": [],
    }


def device_log(dice: Dice) -> str:
    """Give what the machine reported over the network, as `get_device_log` answers: plain text."""
    moment = datetime.fromisoformat("2026-10-31T07:58:00+08:00")
    lines = [f"# {SERIAL} firmware 3.2.1, hardness 2, cycles since delivery 164, log of 13 days"]
    while moment.date() < TODAY:
        for _ in range(dice.number(2, 3)):
            moment += timedelta(minutes=dice.number(2, 190))
            lines.append(_shot(moment, dice))
            if dice.number(0, 2) == 0:
                moment += timedelta(seconds=dice.number(40, 130))
                lines.append(f"{moment:%m-%d %H:%M:%S} STEAM  {dice.number(14, 48)} s at 128 C")
        if moment.date() > date(2026, 11, 2):
            drop = dice.number(30, 90)
            moment += timedelta(minutes=dice.number(3, 20))
            lines.append(
                f"{moment:%m-%d %H:%M:%S} WARN   W-07 base sensor wet, {drop} ml not accounted"
            )
        moment = datetime.combine(moment.date(), moment.timetz()) + timedelta(days=1)
        moment = moment.replace(hour=7, minute=dice.number(20, 59))
    lines.append(
        "11-12 08:04:51 ERROR  E-21 base sensor flooded, boiler tube pressure lost, shut down"
    )
    return "\n".join(lines)


def _shot(moment: datetime, dice: Dice) -> str:
    grams, seconds = dice.number(330, 412) / 10, dice.number(23, 34)
    pressure, heat = dice.number(84, 93) / 10, dice.number(914, 938) / 10
    return (
        f"{moment:%m-%d %H:%M:%S} BREW   double {grams:.1f} g in {seconds} s, "
        f"{pressure:.1f} bar, {heat:.1f} C, tank {dice.number(22, 96)} %"
    )


def product() -> dict[str, Any]:
    """Give the machine's data sheet, as `get_product` answers."""
    return {
        "sku": SKU,
        "name": {
            "zh": "Brava 870 半自动意式咖啡机",
            "en": "Brava 870 semi-automatic espresso machine",
        },
        "category": ["咖啡", "意式咖啡机", "半自动"],
        "list_price": "4980.00",
        "specification": {
            "dimensions_mm": {"width": 312, "depth": 348, "height": 402},
            "weight_kg": 12.4,
            "power_w": 1850,
            "voltage": "220 V / 50 Hz",
            "boiler": {"type": "thermoblock + steam boiler", "material": "stainless steel 316"},
            "pump": {"type": "vibration", "pressure_bar": 15, "preinfusion_s": [3, 8]},
            "tank_l": 2.1,
            "group": {"diameter_mm": 58, "gasket": "GSK-58-8.5"},
            "cord_m": 1.2,
        },
        "parts": [
            {"part": "TNK-870-21", "name": "Water tank", "price": "168.00"},
            {"part": "VLV-870-TK", "name": "Tank valve", "price": "36.00"},
            {"part": "TUB-870-BL", "name": "Boiler tube set", "price": "74.00"},
            {"part": "GSK-58-8.5", "name": "Group gasket", "price": "18.00"},
            {"part": "TRY-870-DR", "name": "Drip tray", "price": "92.00"},
        ],
        "warranty": {"months": 24, "extension": "EXT-870-3Y", "workshop": "WS-SH-02"},
        "service_bulletins": [
            {
                "bulletin": "SB-26-031",
                "issued": "2026-10-27",
                "serials": "BRV-870S-0263900 to BRV-870S-0265250",
                "text": "Clamp of the boiler tube may loosen after about 150 cycles; water collects"
                " under the base. Treat as safety fault, reason code LEAK-BOILER. Reports: 11.",
            },
            {
                "bulletin": "SB-26-018",
                "issued": "2026-06-02",
                "serials": "BRV-870S-0257000 to BRV-870S-0258420",
                "text": "Steam knob may turn stiffly. Exchange the knob on request.",
            },
        ],
        "recalls": [],
    }


def slots(dice: Dice) -> dict[str, Any]:
    """Give the free pickup times at the office, as `list_pickup_slots` answers."""
    windows = ("09:00-12:00", "13:00-16:00", "16:00-18:00", "18:00-20:00")
    rows = [
        _slot(TODAY + timedelta(days=offset), window, carrier, dice)
        for offset in range(1, 6)
        for window in windows
        for carrier in ("SF", "JD")
    ]
    return {"address_id": OFFICE, "item_weight_kg": 12.4, "slots": rows}


def _slot(day: date, window: str, carrier: str, dice: Dice) -> dict[str, Any]:
    return {
        "slot_id": f"slt_{day:%m%d}{carrier.lower()}_{dice.code(6)}",
        "date": day.isoformat(),
        "window": window,
        "carrier": carrier,
        "vehicle": dice.pick(("van", "van", "tricycle")),
        "carton_available": carrier == "SF" or dice.number(0, 2) > 0,
        "fee": "0.00",
        "left": dice.number(1, 6),
    }


def stock(dice: Dice) -> dict[str, Any]:
    """Give the stock by place, as `get_inventory` answers."""
    places = (
        "昆山大件仓", "广州大件仓", "成都仓", "武汉仓", "天津仓", "西安仓",
        "上海静安店", "上海徐家汇店", "上海浦东店", "杭州湖滨店", "苏州观前店", "南京德基店",
        "北京三里屯店", "北京国贸店", "深圳万象店", "广州天河店", "成都太古里店", "重庆来福士店",
    )  # fmt: skip
    rows = []
    for number, place in enumerate(places, start=1):
        on_hand = dice.number(0, 14)
        reserved = dice.number(0, on_hand)
        rows.append(
            {
                "location_id": f"loc_{number:03d}",
                "name": place,
                "on_hand": on_hand,
                "reserved": reserved,
                "available": on_hand - reserved,
                "oldest_serial": f"BRV-870S-{dice.number(262000, 271999):07d}",
                "next_delivery": str(TODAY + timedelta(days=dice.number(3, 24))),
            }
        )
    return {"sku": SKU, "as_of": "2026-11-12T15:20:00+08:00", "locations": rows}


def help_center() -> str:
    """Give the articles, as `search_help_center` answers."""
    return (HERE / "refund_help_center.md").read_text(encoding="utf-8")


def policy() -> str:
    """Give the rules in Chinese, as `get_policy` answers."""
    return (HERE / "refund_policy.zh.md").read_text(encoding="utf-8")


def contacts() -> str:
    """Give the earlier contacts, as `list_contacts` answers."""
    return (HERE / "refund_contacts.txt").read_text(encoding="utf-8")
