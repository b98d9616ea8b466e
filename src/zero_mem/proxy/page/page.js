"use strict";
const TEXTS = {
  en: {
    proxy: "proxy", calls: "calls", prompt: "tokens in prompts", paid: "paid",
    columns: "What the prompts are made of",
    columns_note: "Counted before the call, brought to the provider's own total after it.",
    cache: "By cache state",
    cache_note: "Both ways are priced at the same cache states: the provider's discount on cached tokens is the provider's, and is not counted as saved.",
    read: "cache read", write: "cache write", fresh: "fresh", output: "output", total: "total",
    conversations: "Conversations",
    footer: "Figures only: no message, result or key is kept for this page, and nothing is sent anywhere but to your provider.",
    live: "live", lost: "connection lost", observe: "observe", offload: "offload",
    without: "without memory", would: "with offloading", as_paid: "as paid",
    none: "No call has passed yet",
    none_text: "Point your client at this address; each call shows here a moment after it ends.",
    saved: (p, m) => `${p} saved${m}`, more: (p, m) => `${p} more than without memory${m}`,
    could: (p, m) => `Offloading would save ${p}${m}`, could_not: (p, m) => `Offloading would cost ${p} more${m}`,
    even: "Memory makes no difference so far",
    of_money: " of the cost", of_tokens: " of the prompt tokens",
    offload_text: "Against the same calls with every result in full. Memory's own calls, definitions and reads are on the paid side.",
    observe_text: "The decisions of the mode offload, rehearsed on these calls; the reads that a model would make of its memory are not in it. Nothing was changed.",
    prices: (d) => `Prices of ${d}, US dollars.`, unpriced: (n) => ` ${n} calls of models without a price are in no cost.`,
    estimated: (n) => ` ${n} calls had no usage from the provider and are estimates.`, left_out: (n) => ` ${n} calls could not be counted.`,
    began: "began", last: "last call", receipts: "last receipts", requests: "requests", change: "difference",
    system: "system prompt", tool_definitions: "tool definitions", our_definitions: "memory definitions",
    conversation: "conversation", tool_control: "tool calls", tool_results: "tool results",
    memory_receipts: "receipts", memory_reads: "memory reads",
    named: "named by the caller", session: "by the client's session", marks: "by its own history",
  },
  zh: {
    proxy: "代理", calls: "次调用", prompt: "提示词 token", paid: "实付",
    columns: "提示词由什么组成",
    columns_note: "调用前计数，调用后按服务商给出的总数校正。",
    cache: "按缓存状态",
    cache_note: "两种方式按同样的缓存状态计价：缓存折扣属于服务商，不算作节省。",
    read: "缓存读", write: "缓存写", fresh: "未缓存", output: "输出", total: "合计",
    conversations: "会话",
    footer: "只有数字：本页不保存任何消息、结果或密钥，除你的服务商外不向任何地方发送数据。",
    live: "实时", lost: "连接已断开", observe: "观察", offload: "卸载",
    without: "没有记忆时", would: "卸载后", as_paid: "实付",
    none: "还没有调用经过",
    none_text: "把客户端指向这个地址；每次调用结束后片刻就会显示在这里。",
    saved: (p, m) => `节省了${m} ${p}`, more: (p, m) => `比没有记忆时多用了${m} ${p}`,
    could: (p, m) => `卸载可节省${m} ${p}`, could_not: (p, m) => `卸载会多用${m} ${p}`,
    even: "目前记忆没有带来差别",
    of_money: "费用的", of_tokens: "提示词 token 的",
    offload_text: "与同样的调用、结果全文保留相比。记忆自身的请求、定义和读取都算在实付一侧。",
    observe_text: "在这些调用上演练卸载模式的决定；模型会做的记忆读取不在其中。没有改动任何内容。",
    prices: (d) => `价格日期 ${d}，美元。`, unpriced: (n) => ` ${n} 次调用的模型没有价格，不计入费用。`,
    estimated: (n) => ` ${n} 次调用没有服务商的用量，为估计值。`, left_out: (n) => ` ${n} 次调用未能计数。`,
    began: "开始", last: "最近调用", receipts: "最近回执", requests: "请求", change: "差别",
    system: "系统提示", tool_definitions: "工具定义", our_definitions: "记忆工具定义",
    conversation: "对话", tool_control: "工具调用", tool_results: "工具结果",
    memory_receipts: "回执", memory_reads: "记忆读取",
    named: "由调用方命名", session: "按客户端会话", marks: "按其历史",
  },
};
const COLUMNS = ["system", "tool_definitions", "conversation", "tool_control", "tool_results", "our_definitions", "memory_receipts", "memory_reads"];
const at = (id) => document.getElementById(id);
let language = navigator.language.startsWith("zh") ? "zh" : "en";
let figures = null;

const t = (name, ...given) => {
  const text = TEXTS[language][name];
  return typeof text === "function" ? text(...given) : text;
};
const number = (value) => new Intl.NumberFormat(language, { notation: value >= 1e6 ? "compact" : "standard", maximumFractionDigits: 1 }).format(value);
const money = (value) => value === undefined ? "–" : "$" + value.toLocaleString(language, { minimumFractionDigits: 2, maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2 });
const percent = (share) => new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 }).format(share);
const moment = (seconds) => new Date(seconds * 1000).toLocaleString(language, { dateStyle: "short", timeStyle: "medium" });

function made(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

/* The difference between the two ways, in money where all of it has a price. */
function difference(account) {
  const { paid, other } = account;
  if (!paid || !other) return null;
  const priced = paid.cost && !account.unpriced;
  const [ours, theirs] = priced ? [paid.cost.total, other.cost.total] : [paid.tokens.prompt, other.tokens.prompt];
  const offloads = account.mode ? account.mode === "offload" : figures.mode === "offload";
  const base = offloads ? theirs : ours;
  return { share: base ? (offloads ? theirs - ours : ours - theirs) / base : 0, offloads, priced };
}

function headline(account) {
  const found = difference(account);
  if (!account.calls || !found) return [t("none"), t("none_text"), ""];
  const size = percent(Math.abs(found.share));
  const of = t(found.priced ? "of_money" : "of_tokens");
  const text = t(found.offloads ? "offload_text" : "observe_text");
  if (Math.abs(found.share) < 0.0005) return [t("even"), text];
  const name = found.offloads ? (found.share > 0 ? "saved" : "more") : (found.share > 0 ? "could" : "could_not");
  return [t(name, size, of), text];
}

function showTotal(total) {
  const [title, text] = headline(total);
  at("headline").textContent = title;
  at("sentence").textContent = text;
  at("calls").textContent = number(total.calls || 0);
  at("prompt").textContent = total.paid ? number(total.paid.tokens.prompt) : "–";
  at("paid").textContent = total.paid ? money(total.paid.cost && total.paid.cost.total) : "–";
  at("other").textContent = total.other ? money(total.other.cost && total.other.cost.total) : "–";
  at("other-label").textContent = t(figures.mode === "offload" ? "without" : "would");
}

function showColumns(total) {
  const tokens = total.paid ? total.paid.tokens : {};
  const parts = COLUMNS.map((name) => [name, tokens[name] || 0]);
  at("bar").replaceChildren(...parts.filter(([, count]) => count).map(([name, count]) => {
    const part = made("i", undefined, "bg-" + name);
    part.style.flexGrow = count;
    return part;
  }));
  at("bar").setAttribute("aria-label", parts.map(([name, count]) => `${t(name)} ${number(count)}`).join(", "));
  at("legend").replaceChildren(...parts.map(([name, count]) => {
    const item = made("li");
    item.append(made("i", undefined, "bg-" + name), made("span", t(name)), made("b", number(count)));
    return item;
  }));
}

function showStates(total) {
  const row = (label, side, cost) => {
    const line = made("tr");
    const heading = made("th", label);
    heading.scope = "row";
    line.append(heading);
    for (const name of ["read", "write", "fresh", "output"]) {
      const count = name === "output" ? side.tokens.output : side.cache[name];
      line.append(made("td", cost ? money(side.cost && side.cost[name]) : number(count || 0)));
    }
    line.append(made("td", cost ? money(side.cost && side.cost.total) : number(side.tokens.prompt + side.tokens.output)));
    return line;
  };
  if (!total.paid) return at("states").replaceChildren();
  const other = t(figures.mode === "offload" ? "without" : "would");
  at("states").replaceChildren(
    row(t("as_paid"), total.paid, false), row(other, total.other, false),
    row(t("as_paid") + " $", total.paid, true), row(other + " $", total.other, true),
  );
}

function showRows(rows) {
  if (!rows.length) return at("rows").replaceChildren(made("p", t("none_text"), "empty"));
  at("rows").replaceChildren(...rows.slice(0, 100).map((account) => {
    const row = made("article", undefined, "row");
    const head = made("div");
    head.append(made("h3", `${account.model || "?"} · ${account.conversation.slice(0, 8)}`));
    head.append(made("p", `${t(account.mode)} · ${t(account.origin)} · ${t("last")} ${moment(account.last)}`));
    const cell = (value, label, name) => {
      const element = made("div");
      element.append(made("b", value, name), made("span", label));
      return element;
    };
    const found = difference(account);
    const share = found ? found.share : 0;
    row.append(
      head,
      cell(`${number(account.calls)} / ${number(account.requests)}`, `${t("calls")} / ${t("requests")}`),
      cell(number(account.paid.tokens.prompt), t("prompt")),
      cell(money(account.paid.cost && account.paid.cost.total), t("paid")),
      cell((share > 0 ? "−" : share < 0 ? "+" : "") + percent(Math.abs(share)), t(account.mode === "offload" ? "without" : "would"), share > 0 ? "good-text" : share < 0 ? "bad-text" : ""),
    );
    if (account.receipts && account.receipts.length) row.append(made("p", `${t("receipts")}: ${account.receipts.join("  ")}`, "receipts"));
    return row;
  }));
}

function show() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  at("language").textContent = language === "zh" ? "English" : "中文";
  at("language").lang = language === "zh" ? "en" : "zh";
  if (!figures) return;
  const total = figures.total;
  at("mode").textContent = t(figures.mode);
  at("mode").classList.toggle("good", figures.mode === "offload");
  showTotal(total);
  showColumns(total);
  showStates(total);
  showRows(figures.conversations);
  at("prices").textContent = t("prices", figures.prices)
    + (total.unpriced ? t("unpriced", number(total.unpriced)) : "")
    + (total.estimated ? t("estimated", number(total.estimated)) : "")
    + (figures.left_out ? t("left_out", number(figures.left_out)) : "");
}

at("language").addEventListener("click", () => { language = language === "zh" ? "en" : "zh"; connected(at("live").classList.contains("on")); show(); });

function connected(is) {
  at("live").classList.toggle("on", is);
  at("live").textContent = t(is ? "live" : "lost");
}

const events = new EventSource("zero-mem/events");
events.onopen = () => connected(true);
events.onerror = () => connected(false);
events.onmessage = (event) => { figures = JSON.parse(event.data); show(); };
connected(false);
show();
