// Keys only: every page works without this file.
const GOES = { s: "/sessions", o: "/objects", n: "/notes", t: "/tasks", m: "/memory" };
let waits = false;

function follow(relation) {
  const link = document.querySelector(`a[rel="${relation}"]`);
  if (link) location.assign(link.href);
}

document.addEventListener("keydown", (event) => {
  const types = event.target.matches("input, select, textarea, button");
  if (event.key === "Escape" && types) event.target.blur();
  if (types || event.ctrlKey || event.metaKey || event.altKey) return;
  const after = waits;
  waits = event.key === "g";
  if (after && GOES[event.key]) location.assign(GOES[event.key]);
  else if (event.key === "/") document.getElementById("jump").focus();
  else if (event.key === "[") follow("prev");
  else if (event.key === "]") follow("next");
  else return;
  event.preventDefault();
});
