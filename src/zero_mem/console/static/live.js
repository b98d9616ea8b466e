// New receipts at the top of the list. All text is set as text; nothing is parsed as markup.

const page = document.getElementById("live");
const list = document.getElementById("receipts");
const state = document.getElementById("state");
const pause = document.getElementById("pause");
const blank = document.getElementById("row").content.firstElementChild;
const words = page.dataset;
const kept = Number(words.kept);

let paused = false;
let connection = "lost";
let waiting = [];

function show(receipt) {
  const row = blank.cloneNode(true);
  for (const field of row.querySelectorAll("[data-field]")) {
    field.textContent = receipt[field.dataset.field];
  }
  row.querySelector("a").href = receipt.link;
  row.querySelector("time").dateTime = receipt.at;
  row.classList.add("fresh");
  list.prepend(row);
  while (list.childElementCount > kept) list.lastElementChild.remove();
  document.getElementById("empty").hidden = true;
}

function tell() {
  const count = waiting.length;
  state.textContent = paused ? words.paused.replace("#", count) : words[connection];
  state.classList.toggle("on", !paused && connection === "on");
  pause.textContent = paused ? words.resume : words.pause;
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  if (!paused) {
    waiting.forEach(show);
    waiting = [];
  }
  tell();
});

// The browser connects again by itself, and says which event it saw last.
const events = new EventSource(words.events);
events.addEventListener("open", () => {
  connection = "on";
  tell();
});
events.addEventListener("error", () => {
  connection = events.readyState === EventSource.CLOSED ? "ended" : "lost";
  tell();
});
events.addEventListener("change", (event) => {
  const receipt = JSON.parse(event.data);
  if (!paused) return show(receipt);
  waiting = [...waiting, receipt].slice(-kept);
  tell();
});
window.addEventListener("pagehide", () => events.close());
tell();
