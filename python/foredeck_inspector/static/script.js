// Keys, filters that fold away on a narrow screen, and following a session: every page works without this file.
const GOES = { o: "/overview", s: "/search", n: "/notes", t: "/tasks", m: "/memory", e: "/settings" };
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

if (matchMedia("(max-width: 48rem)").matches) {
  for (const each of document.querySelectorAll("details.filters")) each.open = false;
}

// With ?follow the page of the session that is at work renews itself at each of its calls.
if (new URLSearchParams(location.search).has("follow")) {
  let seen = null;
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch("/follow.json");
    if (!answer.ok) return;
    const { session, calls, address } = await answer.json();
    const now = `${session} ${calls}`;
    if (seen !== null && seen !== now && address) location.replace(address);
    seen = now;
  }, 2000);
}
