"""An agent of the invented shop handles a refund: some 30 calls, long results, two languages."""

from __future__ import annotations

from typing import Any

from samples import shop
from samples.run import Dice, Run, tool, transcript

SYSTEM = """You are the after-sales agent of 港湾生活 Harbour Living, a kitchenware shop.

Today is Thursday, 2026-11-12, 15:10 in Shanghai. Answer in the language of the customer's last message.

- Safety first: a fault with water at heated parts, current, smoke or smell means: unplug, stop using it. Say so before anything else.
- Look things up before you answer. Never state an id, a date or an amount that no tool has given you.
- Before you change anything (return, pickup, refund) say what you are about to do and get a clear yes.
- Refund only what `quote_refund` gives, to the way of payment that was used. Above 2,000.00 CNY a valid quote is required.
- A delegate may choose pickup time and place; not the account that receives money, and not see other orders.
- Write a contact note before the conversation ends, with every number that a colleague would need.
- Keep answers short. Amounts in CNY with two decimals."""

TOOLS = (
    tool(
        "find_customer",
        "Find an account by e-mail or phone number.",
        email="Optional e-mail address",
        phone="Optional phone number with country code",
    ),
    tool(
        "list_orders",
        "List an account's orders, newest first.",
        customer_id="Account, cus_…",
        since="First day, YYYY-MM-DD",
    ),
    tool(
        "get_order", "Read one order with lines, totals and shipments.", order_id="HH-YYMMDD-NNNN"
    ),
    tool("get_shipment", "Read one shipment with all scans.", shipment_id="shp_…"),
    tool("list_payments", "List an account's payments, newest first.", customer_id="cus_…"),
    tool("get_transaction", "Read one payment with the gateway's events.", transaction_id="txn_…"),
    tool("search_help_center", "Search the internal articles.", query="Words to look for"),
    tool("get_policy", "Read the after-sales rules of a region.", policy_id="For example CN-AS"),
    tool("get_product", "Read a product's data sheet and bulletins.", sku="Stock keeping unit"),
    tool(
        "check_warranty",
        "Check warranty, recall and bulletins for one machine.",
        sku="Stock keeping unit",
        serial_number="As on the order line",
    ),
    tool(
        "get_device_log",
        "Read what a connected machine reported in the last days.",
        serial_number="As on the order line",
    ),
    tool("list_contacts", "Read earlier contacts with a customer.", customer_id="cus_…"),
    tool(
        "quote_refund",
        "Compute what would be refunded; changes nothing.",
        order_id="HH-YYMMDD-NNNN",
        line_ids="Order lines, separated by commas",
        reason_code="Reason code of HC-204",
    ),
    tool(
        "verify_delegate",
        "Check that a person may act for the customer.",
        customer_id="cus_…",
        name="Name as given",
        phone_suffix="Last four digits",
    ),
    tool(
        "create_return",
        "Open a return.",
        order_id="HH-YYMMDD-NNNN",
        line_ids="Order lines, separated by commas",
        reason_code="Reason code of HC-204",
        serial_number="Of the machine",
        quote_id="QT-…",
    ),
    tool(
        "list_pickup_slots",
        "List free pickup times for a return.",
        rma_id="RMA-…",
        address_id="adr_…, of the customer's account",
    ),
    tool(
        "book_pickup",
        "Book a pickup.",
        rma_id="RMA-…",
        slot_id="slt_…",
        address_id="adr_…",
        contact_name="Who will be there",
        contact_phone="Mobile number",
        carton="true or false",
    ),
    tool("get_inventory", "Read the stock of a product by place.", sku="Stock keeping unit"),
    tool(
        "refund_transaction",
        "Pay back a payment that should not have been taken.",
        transaction_id="txn_…",
        amount="CNY, two decimals",
        reason="For example duplicate_capture",
        authorisation_code="Of the gateway",
    ),
    tool(
        "issue_refund",
        "Pay out a quoted refund.",
        quote_id="QT-…",
        rma_id="RMA-…",
        payment_method_id="pm_…, the one that was used",
        amount="CNY, as quoted",
        timing="instant, on_scan or after_inspection",
        pickup_id="Optional, for instant refunds",
    ),
    tool("get_refund", "Read a refund and its way.", refund_id="rf_…"),
    tool(
        "add_contact_note",
        "Write a note for colleagues.",
        customer_id="cus_…",
        order_id="HH-YYMMDD-NNNN",
        text="The note",
    ),
    tool(
        "send_message",
        "Send a template message to the customer.",
        customer_id="cus_…",
        template="Template id",
        channel="sms, email or app",
        variables="JSON object",
    ),
)

QUOTE, AMOUNT = "QT-261112-30784", "5140.34"
RMA, PICKUP = "RMA-26-118430", "PU-SH-7726104"
REFUND_GOODS, REFUND_FEE = "rf_8m3t6y1z", "rf_2d9h5c7u"
ARN_GOODS, ARN_FEE = "74987506316004417720118", "74987506316004417720126"


def build() -> str:
    """Write the whole run as one transcript."""
    run, dice = Run(seed=5176, system=SYSTEM), Dice(20261112)
    listed = shop.orders(dice)
    _customer_asks(run, listed)
    _agent_looks_up(run, dice)
    _amounts(run, shop.payments(listed["orders"], dice))
    slot = _pickup(run, dice)
    _money_back(run)
    _close(run, slot)
    return transcript(run, TOOLS)


def _customer_asks(run: Run, listed: dict[str, Any]) -> None:
    run.user(
        "你好，我国庆后买的意式咖啡机底部一直漏水，越来越严重，今天早上台面上一大滩。"
        "之前问过机器人说是冷凝水，明显不是。我想退货退款。邮箱 lin.yue@muye-design.example"
    )
    run.calls("find_customer", {"email": "lin.yue@muye-design.example"}, shop.customer())
    run.calls("list_orders", {"customer_id": shop.CUSTOMER, "since": "2025-01-01"}, listed)
    run.says(
        "林女士您好，请先拔掉插头、停止使用，机器里有水接触加热部件时不安全。\n"
        f"我查到 10 月 8 日的订单 {shop.ORDER}（Brava 870 半自动意式咖啡机），10 月 11 日签收。"
        "请问是这一台吗？水是从水箱一侧、冲煮头，还是机器底部渗出来的？"
    )
    run.user("对，就是 870。已经拔了。水是从机器底下渗出来的，水箱拿掉擦干以后，开机打两杯又有了。")


def _agent_looks_up(run: Run, dice: Dice) -> None:
    run.calls("get_order", {"order_id": shop.ORDER}, shop.order())
    run.calls("get_shipment", {"shipment_id": shop.SHIPMENT}, shop.shipment(dice))
    run.calls(
        "search_help_center",
        {"query": "refund faulty appliance leaking"},
        shop.help_center(),
    )
    run.calls("get_policy", {"policy_id": "CN-AS"}, shop.policy())
    run.calls("get_product", {"sku": shop.SKU}, shop.product())
    run.calls(
        "check_warranty",
        {"sku": shop.SKU, "serial_number": shop.SERIAL},
        {
            "serial_number": shop.SERIAL,
            "in_warranty": True,
            "warranty_until": "2028-10-11",
            "recall": None,
            "bulletins": ["SB-26-031"],
        },
    )
    run.calls("get_device_log", {"serial_number": shop.SERIAL}, shop.device_log(dice))
    run.calls("list_contacts", {"customer_id": shop.CUSTOMER}, shop.contacts())
    run.says(
        "谢谢您的描述，也抱歉之前的答复不对。您这台机器属于通报 SB-26-031 的批次：锅炉水管卡箍可能松动，"
        "机器今早 08:04 也自己报了 E-21 并停机，"
        "我们按安全类质量问题处理。签收后 90 天内，您可以选择退货退款、换货或维修，运费由我们承担。\n"
        "另外，同一套装里的 G2 磨豆机和延长保修，您希望保留还是一起退？"
    )
    run.user(
        "磨豆机没问题，留着。咖啡机退掉，延保当然也不要了。还有一件事：信用卡账单里，"
        "这个订单的送货上楼费好像扣了两次，麻烦一起查一下。"
    )


def _amounts(run: Run, paid: dict[str, Any]) -> None:
    run.calls("list_payments", {"customer_id": shop.CUSTOMER}, paid)
    run.calls("get_transaction", {"transaction_id": shop.PAYMENT_DOUBLE}, shop.double_capture())
    lines = [shop.LINE_MACHINE, shop.LINE_WARRANTY]
    run.calls(
        "quote_refund",
        {"order_id": shop.ORDER, "line_ids": ",".join(lines), "reason_code": "LEAK-BOILER"},
        {
            "quote_id": QUOTE,
            "order_id": shop.ORDER,
            "valid_until": "2026-11-13T15:24:00+08:00",
            "lines": [
                {
                    "line_id": lines[0],
                    "list": "4980.00",
                    "bundle_share": "-238.66",
                    "net": "4741.34",
                },
                {"line_id": lines[1], "list": "399.00", "bundle_share": "0.00", "net": "399.00"},
            ],
            "kept": [{"line_id": "li_51760002", "bundle_share": "-61.34", "taken_back": False}],
            "points_taken_back": 5140,
            "route": "CUP-C",
            "payment_method_id": shop.CARD,
            "total": AMOUNT,
            "approval": "agent_with_quote",
        },
    )
    run.says(
        f"查清楚了：\n1. 退货报价 {QUOTE}：咖啡机 4741.34 元（标价 4980.00，减去它分摊的套装优惠 238.66），"
        f"延保 399.00 元，合计 {AMOUNT} 元，退回尾号 4471 的银联信用卡。磨豆机的优惠不追回。\n"
        f"2. 送货费确实请款了两次，10 月 13 日的第二笔 58.00 元（{shop.PAYMENT_DOUBLE}）会退还。\n"
        "确认的话，我来开退货单并安排上门取件。您希望在哪里取？"
    )
    run.user(
        "确认。接下来我先生 Daniel 来跟你约时间，他在旁边，他用英文比较方便。\n\n"
        "Hi, Daniel Hsu here, my number ends in 6052. Could someone collect it from Yue's office rather "
        "than from home? Tomorrow (Friday) after four would be best, and we have no box any more."
    )


def _pickup(run: Run, dice: Dice) -> dict[str, str]:
    run.calls(
        "verify_delegate",
        {"customer_id": shop.CUSTOMER, "name": "Daniel Hsu", "phone_suffix": "6052"},
        {"delegate_id": "dlg_70f2", "match": True, "scopes": ["returns_and_pickups"]},
    )
    run.calls(
        "create_return",
        {
            "order_id": shop.ORDER,
            "line_ids": f"{shop.LINE_MACHINE},{shop.LINE_WARRANTY}",
            "reason_code": "LEAK-BOILER",
            "serial_number": shop.SERIAL,
            "quote_id": QUOTE,
        },
        {
            "rma_id": RMA,
            "state": "awaiting_pickup",
            "workshop": "WS-SH-02",
            "pack": ["machine, tank empty", "drip tray", "portafilter", "power cord"],
            "keep": ["li_51760002", "li_51760008"],
            "label": "brought by the courier",
        },
    )
    free = shop.slots(dice)
    run.calls("list_pickup_slots", {"rma_id": RMA, "address_id": shop.OFFICE}, free)
    run.says(
        f"Thank you, Daniel, you are on the account for returns. The return is open: {RMA}.\n"
        "At the office on Friday, 13 November there is 16:00-18:00 or 18:00-20:00, each with SF or JD; "
        "SF brings a carton. Pickup is free. Which one, and which mobile number should the courier call?"
    )
    run.user(
        "16:00-18:00 with SF please, and the carton. Call me: 139 1770 6052. Out of curiosity, if we "
        "changed our minds and took a new one instead, is there one near us from a good batch?"
    )
    slot: dict[str, str] = next(
        row
        for row in free["slots"]
        if (row["date"], row["window"], row["carrier"]) == ("2026-11-13", "16:00-18:00", "SF")
    )
    run.calls(
        "book_pickup",
        {
            "rma_id": RMA,
            "slot_id": slot["slot_id"],
            "address_id": shop.OFFICE,
            "contact_name": "Daniel Hsu",
            "contact_phone": "+86 139 1770 6052",
            "carton": "true",
        },
        {"pickup_id": PICKUP, "waybill": "SF7311840026695", "state": "booked", "fee": "0.00"},
    )
    run.calls("get_inventory", {"sku": shop.SKU}, shop.stock(dice))
    run.says(
        f"Booked: {PICKUP}, Friday 13 November, 16:00-18:00, SF, carton included, courier calls "
        "139 1770 6052. Please empty the water tank before.\n"
        "New machines are in stock in Shanghai, but the shelf holds serials from before and after the "
        "bulletin, so I would have one checked first. The money: as Yue is a Gold member and this is a "
        "safety fault, I can pay the refund now rather than after the inspection. It goes to her card "
        "in any case. Shall I?"
    )
    run.user(
        "No new one then. Yes, refund now, to the same card. Yue nods. And the delivery fee too."
    )
    return slot


def _money_back(run: Run) -> None:
    run.calls(
        "refund_transaction",
        {
            "transaction_id": shop.PAYMENT_DOUBLE,
            "amount": "58.00",
            "reason": "duplicate_capture",
            "authorisation_code": shop.AUTH_FEE,
        },
        {"refund_id": REFUND_FEE, "state": "sent", "amount": "58.00", "arn": ARN_FEE},
    )
    run.calls(
        "issue_refund",
        {
            "quote_id": QUOTE,
            "rma_id": RMA,
            "payment_method_id": shop.CARD,
            "amount": AMOUNT,
            "timing": "instant",
            "pickup_id": PICKUP,
        },
        {"refund_id": REFUND_GOODS, "state": "sent", "amount": AMOUNT, "route": "CUP-C"},
    )
    run.calls(
        "get_refund",
        {"refund_id": REFUND_GOODS},
        {
            "refund_id": REFUND_GOODS,
            "amount": AMOUNT,
            "route": "CUP-C",
            "arn": ARN_GOODS,
            "expected": {"from": "2026-11-17", "to": "2026-11-23", "latest": "2026-12-03"},
            "events": [
                {"at": "2026-11-12T15:58:20+08:00", "event": "created"},
                {"at": "2026-11-12T15:58:21+08:00", "event": "quote_checked", "quote_id": QUOTE},
                {"at": "2026-11-12T15:58:22+08:00", "event": "pickup_checked", "pickup_id": PICKUP},
                {"at": "2026-11-12T15:58:40+08:00", "event": "accepted_by_acquirer"},
            ],
        },
    )


def _close(run: Run, slot: dict[str, str]) -> None:
    run.calls(
        "add_contact_note",
        {
            "customer_id": shop.CUSTOMER,
            "order_id": shop.ORDER,
            "text": f"Brava 870, serial {shop.SERIAL}, leaks under the base (SB-26-031, LEAK-BOILER; log: E-21 on 11-12 after 164 cycles). "
            f"Lines {shop.LINE_MACHINE} and {shop.LINE_WARRANTY} returned, grinder kept. {RMA}, quote "
            f"{QUOTE}, pickup {PICKUP} (slot {slot['slot_id']}, address {shop.OFFICE}), arranged by "
            f"delegate Daniel Hsu dlg_70f2. Instant refund {REFUND_GOODS} {AMOUNT} CNY to {shop.CARD}. "
            f"Second capture {shop.PAYMENT_DOUBLE} of {shop.PAYMENT_FEE} refunded: {REFUND_FEE} 58.00 "
            "CNY. Bot contact CT-193377 had sent the customer away; CT-193902 was waiting unread.",
        },
        {"contact_id": "CT-194618", "saved": True},
    )
    run.calls(
        "send_message",
        {
            "customer_id": shop.CUSTOMER,
            "template": "RETURN-CONFIRMED-ZH",
            "channel": "sms",
            "variables": f'{{"rma": "{RMA}", "pickup": "{PICKUP}", "amount": "{AMOUNT}"}}',
        },
        {"message_id": "msg_51d8", "to": "+86 138 **** 7093", "state": "delivered"},
    )
    run.says(
        f"All done.\n- Return {RMA}, pickup {PICKUP}, Friday 16:00-18:00 at the office.\n"
        f"- {AMOUNT} CNY to UnionPay ending 4471, refund {REFUND_GOODS}, expected 17-23 November.\n"
        f"- 58.00 CNY delivery fee to the same card, refund {REFUND_FEE}.\n"
        "A text message with the numbers has gone to Yue's phone."
    )
    run.user(
        "谢谢，我是林玥。银行要两笔退款的追踪号，麻烦发我。还有当时签收的快递单号、机器序列号，"
        "我写个说明给公司行政，他们要放行。"
    )
    run.says(
        f"林女士，都在这里：\n- {AMOUNT} 元：追踪号（ARN）{ARN_GOODS}\n- 58.00 元：追踪号（ARN）{ARN_FEE}\n"
        f"- 送货快递单号：{shop.TRACKING}（10 月 11 日签收）\n- 机器序列号：{shop.SERIAL}\n"
        f"- 明天取件单号：{PICKUP}，顺丰运单 SF7311840026695，联系人 Daniel Hsu\n"
        "取件前请清空水箱。给您添麻烦了，祝您一切顺利。"
    )
