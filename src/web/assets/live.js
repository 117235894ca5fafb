// Keeps an open page as it is now: when the server says that something changed, the page fetches
// itself and is changed in place, so that focus, scroll and what is open stay. Without this script
// every page works the same, but stands still. Loaded by pages/layout.ts.
(() => {
  const main = document.querySelector("main");
  const state = document.querySelector("[data-live]");
  if (main === null || main.dataset.static !== undefined) return;
  const keep = { open: true };
  let tag = "";
  let busy = false;
  let again = false;

  const say = (text) => {
    if (state !== null && state.textContent !== text) state.textContent = text;
  };

  const morph = (text) => {
    const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    if (next === null) return;
    window.Idiomorph.morph(main, next, {
      morphStyle: "outerHTML",
      ignoreActiveValue: true,
      restoreFocus: true,
      callbacks: {
        // What a person has opened stays open.
        beforeAttributeUpdated: (name, node) => !(node.localName === "details" && keep[name]),
      },
    });
  };

  const refresh = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const headers = tag === "" ? {} : { "if-none-match": tag };
      const answer = await fetch(location.href, { headers, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") location.reload();
      else if (answer.status === 200) {
        tag = answer.headers.get("etag") ?? "";
        morph(await answer.text());
        say("live");
      } else say(answer.status === 304 ? "live" : `not live: the server answers ${answer.status}`);
    } catch {
      say("not live: the server does not answer");
    } finally {
      busy = false;
      if (again) {
        again = false;
        setTimeout(refresh, 1000);
      }
    }
  };

  const events = new EventSource("/events");
  let wasOpen = false;
  events.addEventListener("open", () => {
    say("live");
    // What changed while the stream was away.
    if (wasOpen) void refresh();
    wasOpen = true;
  });
  events.addEventListener("changed", refresh);
  events.addEventListener("error", () => say("not live: trying again"));
  // Words such as "3 min ago" grow old without a change.
  setInterval(() => document.visibilityState === "visible" && refresh(), 30000);

  // Filters apply while one types.
  let typing;
  document.addEventListener("input", ({ target }) => {
    const form = target.closest("form[data-instant]");
    if (form === null) return;
    clearTimeout(typing);
    typing = setTimeout(() => {
      const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
      history.replaceState(null, "", query.size === 0 ? location.pathname : `?${query}`);
      tag = "";
      void refresh();
    }, 200);
  });
})();
