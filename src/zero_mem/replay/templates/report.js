"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const count = (n) => n.toLocaleString("en");

  // Charts: the legend shows and hides lines; the pointer reads the values at a call.
  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      for (const part of document.querySelectorAll(`#lines [data-key="${button.dataset.key}"]`)) {
        part.classList.toggle("off", !on);
      }
    });
  }
  const series = JSON.parse($("lines").querySelector("[data-series]")?.dataset.series ?? "[]");
  const longest = Math.max(2, ...series.map((each) => each.values.length));
  const shown = (key) =>
    document.querySelector(`.legend [data-key="${key}"]`)?.getAttribute("aria-pressed") === "true";
  const readAt = (svg, call) => {
    const [, , width] = svg.getAttribute("viewBox").split(" ").map(Number);
    const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
    const x = left + ((call - 1) / (longest - 1)) * (width - left - right);
    const cursor = svg.querySelector(".cursor");
    cursor.setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
    cursor.classList.add("on");
    const readout = $("line-readout");
    readout.replaceChildren(make("b", "", `Call ${call}`));
    for (const each of series) {
      if (call > each.values.length || !shown(each.key)) continue;
      const line = make("span", `s-${each.key}`, `${each.label} `);
      line.append(make("strong", "", count(Math.round(each.values[call - 1]))));
      readout.append(line);
    }
  };
  for (const svg of document.querySelectorAll("svg.lines")) {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const [, , width] = svg.getAttribute("viewBox").split(" ").map(Number);
      const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
      const x = ((event.clientX - box.left) / box.width) * width;
      const at = 1 + Math.round(((x - left) / (width - left - right)) * (longest - 1));
      readAt(svg, Math.min(longest, Math.max(1, at)));
    });
    svg.addEventListener("pointerleave", () => svg.querySelector(".cursor").classList.remove("on"));
  }
  $("metric").addEventListener("change", (event) => {
    for (const chart of document.querySelectorAll("[data-metric]")) {
      chart.hidden = chart.dataset.metric !== event.target.value;
    }
  });

  const book = JSON.parse($("book").textContent);

  // What recall would have chosen at a user turn, and what just missed.
  const signed = (name, value) => (name.startsWith("x ") ? `×${value}` : value < 0 ? `−${-value}` : `+${value}`);
  const evidenceNode = ([place, who, score, parts, text, outcome], best, out) => {
    const node = make("li", out ? "evidence missed" : "evidence");
    const head = make("header");
    head.append(make("b", "", `message ${place}`), make("span", "", who));
    const bar = make("span", "bar");
    bar.append(make("i", ""));
    bar.firstChild.style.setProperty("width", `${Math.max(2, (100 * score) / best)}%`);
    head.append(bar, make("strong", "", score.toFixed(3)));
    if (outcome) head.append(make("em", "", `over ${outcome}`));
    const made = make("p", "parts");
    for (const [name, value] of parts) {
      const part = make("span", "", name === "own" ? "words " : `${name.replace("x ", "")} `);
      part.append(make("b", "", signed(name, value)));
      made.append(part);
    }
    node.append(head, make("pre", "body", text), made);
    return node;
  };
  const evidence = book.evidence ?? [];
  if (evidence.length) {
    const runs = $("search-run"), turnList = $("search-turn"), found = $("found");
    evidence.forEach((run, at) => runs.append(new Option(run.name, String(at))));
    const list = (title, items, best, out) => {
      if (!items.length) return;
      found.append(make("h3", "", title));
      const all = make("ol", "found");
      for (const item of items) all.append(evidenceNode(item, best, out));
      found.append(all);
    };
    const showTurn = () => {
      const turn = evidence[Number(runs.value)].turns[Number(turnList.value)];
      found.replaceChildren(make("blockquote", "", turn.q));
      if (!turn.of) return void found.append(make("p", "empty", "Nothing was said before this turn."));
      if (!turn.in.length) return void found.append(make("p", "empty", `Nothing of the ${count(turn.of)} earlier records matches.`));
      const best = Math.max(...turn.in.map((item) => item[2]), 1e-9);
      list(`Chosen: ${turn.in.length} of ${count(turn.of)} earlier records, ${count(turn.tokens)} tokens`, turn.in, best, false);
      list("Just missed", turn.out, best, true);
    };
    const fillTurns = () => {
      const turns = evidence[Number(runs.value)].turns;
      turnList.replaceChildren(...turns.map((turn, at) => new Option(`message ${turn.at}: ${turn.q.slice(0, 60)}`, String(at))));
      turnList.value = String(turns.length - 1);
      showTurn();
    };
    runs.addEventListener("change", fillTurns);
    turnList.addEventListener("change", showTurn);
    $("search-controls").addEventListener("submit", (event) => event.preventDefault());
    $("search-controls").hidden = false;
    fillTurns();
  }

  // The prompt of one call, put together from what changed at each call before it.
  if (!book.runs.length) return;
  const runs = $("run"), strategies = $("strategy"), calls = $("call");
  const entriesAt = (prompts, call) => {
    let entries = [];
    for (const [kept, added] of prompts.slice(0, call)) entries = entries.slice(0, kept).concat(added);
    return entries;
  };
  book.runs.forEach((run, at) => runs.append(new Option(run.name, String(at))));
  const fillStrategies = (run) => {
    const wanted = strategies.value || book.judged;
    strategies.replaceChildren();
    for (const { key, label } of book.strategies) {
      if (run.prompts[key]) strategies.append(new Option(label, key));
    }
    if (run.prompts[wanted]) strategies.value = wanted;
  };

  const why = $("why");
  const tell = (text) => {
    why.textContent = text;
    why.hidden = !text;
  };
  const columns = { memory_receipts: "Receipt", tool_results: "From a tool result", conversation: "Put in by the strategy" };
  const marked = (text, spans, line) => {
    let done = 0;
    for (const [start, end, column, reason] of spans) {
      if (start < done || end <= start) continue;
      line.append(text.slice(done, start));
      const mark = make("mark", column, text.slice(start, end));
      const told = `${columns[column]}: ${reason}`;
      mark.tabIndex = 0;
      mark.setAttribute("aria-description", told);
      mark.addEventListener("pointerenter", () => tell(told));
      mark.addEventListener("pointerleave", () => tell(""));
      mark.addEventListener("focus", () => tell(told));
      mark.addEventListener("blur", () => tell(""));
      line.append(mark);
      done = end;
    }
    line.append(text.slice(done));
  };
  const messageNode = (message, isAnswer) => {
    const node = make("li", "message");
    const head = make("header");
    head.append(make("b", "", isAnswer ? "the answer" : message.role));
    if (message.tool) head.append(make("span", "", message.tool));
    if (message.changed) head.append(make("em", "", message.changed));
    node.classList.toggle("touched", Boolean(message.changed));
    node.classList.toggle("answer", isAnswer);
    const text = make("div", "text");
    if (message.text) {
      const body = make("pre", "body");
      marked(message.text, message.spans ?? [], body);
      text.append(body);
    }
    if (message.cut) text.append(make("p", "sub", `… ${count(message.cut)} more characters are not on this page`));
    if (message.text.length > 1200) {
      text.classList.add("long");
      const more = make("button", "more-text", "Show all of it");
      more.type = "button";
      more.setAttribute("aria-expanded", "false");
      more.addEventListener("click", () => {
        const open = text.classList.toggle("long") === false;
        more.textContent = open ? "Show less" : "Show all of it";
        more.setAttribute("aria-expanded", String(open));
      });
      text.append(more);
    }
    for (const [name, given] of message.calls ?? []) {
      const line = make("pre", "call");
      line.append(make("b", "", name), `(${given})`);
      text.append(line);
    }
    node.append(head, text);
    return node;
  };
  const showNeeds = (values) => {
    const needs = $("needs");
    needs.replaceChildren();
    needs.hidden = values.length === 0;
    if (!values.length) return;
    needs.append(make("span", "", "This call took from earlier results:"));
    for (const [value, visible, linked, read] of values) {
      const away = read ? `not in this prompt: one read of memo:${read} away, which is charged` : "not in this prompt";
      const state = linked ? "visible with its key" : visible ? "visible" : away;
      const chip = make("span", visible ? "need" : "need gone", `${visible ? "✓" : "✗"} ${value}`);
      if (read) chip.append(make("b", "", ` read memo:${read}`));
      chip.title = state;
      chip.append(make("span", "hidden", `, ${state}`));
      needs.append(chip);
    }
  };
  const show = () => {
    const run = book.runs[Number(runs.value)];
    const prompts = run.prompts[strategies.value];
    calls.max = String(prompts.length);
    const call = Math.min(Number(calls.value), prompts.length);
    const [kept, , tokens, values] = prompts[call - 1];
    $("call-name").textContent = `${call} of ${prompts.length} · ${count(tokens)} tokens`;
    $("back").disabled = call <= 1;
    $("forth").disabled = call >= prompts.length;
    showNeeds(values);
    const list = $("prompt");
    list.replaceChildren();
    entriesAt(prompts, call).forEach((number, at) => {
      if (call > 1 && at === kept) {
        list.append(make("li", "prefix-end", "Above: unchanged since the call before, read from the provider's cache. Below: new."));
      }
      list.append(messageNode(run.messages[number], false));
    });
    list.append(messageNode(run.messages[run.answers[call - 1]], true));
    tell("");
  };
  const step = (by) => {
    calls.value = String(Number(calls.value) + by);
    show();
  };
  runs.addEventListener("change", () => {
    fillStrategies(book.runs[Number(runs.value)]);
    calls.value = "1";
    show();
  });
  strategies.addEventListener("change", show);
  calls.addEventListener("input", show);
  $("back").addEventListener("click", () => step(-1));
  $("forth").addEventListener("click", () => step(1));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("controls").hidden = false;
  fillStrategies(book.runs[0]);
  // Begin where there is most to see: the call that took most from earlier results.
  const taken = book.runs[0].prompts[strategies.value].map(([, , , values]) => values.length);
  calls.max = String(taken.length);
  calls.value = String(Math.max(...taken) ? taken.indexOf(Math.max(...taken)) + 1 : taken.length);
  show();
})();
