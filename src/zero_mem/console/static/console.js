// Small conveniences of every page; each works without this file too.

// "/" leads to the search field, as in many tools; not while somebody writes.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector("[data-search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});

// The address loses a notice that was shown, so that a reload does not say it again.
const here = new URL(location.href);
if (here.searchParams.has("notice")) {
  here.searchParams.delete("notice");
  history.replaceState(null, "", here);
}
