// Keys, and tables that open when something in them is asked for: the page works without this file.
const parts = [...document.querySelectorAll("section.part")];

function show(id) {
  const found = document.getElementById(id);
  for (let at = found; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (found) found.scrollIntoView();
}

function step(by) {
  const tops = parts.map((part) => part.getBoundingClientRect().top);
  const passed = tops.filter((top) => top < (by > 0 ? 60 : 0)).length;
  const next = by > 0 ? parts[passed] : parts[passed - 1];
  if (next) next.scrollIntoView();
}

addEventListener("hashchange", () => show(location.hash.slice(1)));
if (location.hash) show(location.hash.slice(1));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "[") step(-1);
  else if (event.key === "]") step(1);
});
