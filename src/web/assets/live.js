// Keeps an open page as it is now: when the server says that something changed, the page fetches
// itself and is changed in place, so that focus, scroll and what is open stay. Without this script
// every page works the same, but stands still. Loaded by pages/layout.ts.
(() => {
  const main = document.querySelector("main");
  const state = document.querySelector("[data-live]");
  if (main === null || main.dataset.static !== undefined) return;
  let [tag, busy, again] = ["", false, false];

  /** Shows how current the page is; `isLive`: whether changes come by themselves. */
  const say = (text, isLive = false) => {
    if (state === null || state.textContent === text) return;
    state.textContent = text;
    state.dataset.live = isLive ? "yes" : "no";
  };

  const morph = (text) => {
    const parsed = new DOMParser().parseFromString(text, "text/html");
    const next = parsed.querySelector("main");
    if (next === null) return;
    document.title = parsed.title;
    window.Idiomorph.morph(main, next, {
      morphStyle: "outerHTML",
      ignoreActiveValue: true,
      restoreFocus: true,
      callbacks: {
        // What a person has opened or typed stays: the address has all that a field had before.
        beforeAttributeUpdated: (name, { localName }) =>
          !(localName === "details" && name === "open") && !(localName === "input" && name === "value"),
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
      // An ingress may hold the answer back, and the page would go on saying that it is live.
      const signal = AbortSignal.timeout(20000);
      const answer = await fetch(location.href, { headers, redirect: "manual", cache: "no-store", signal });
      if (answer.type === "opaqueredirect") location.reload();
      // It is being worked out: what is shown stays until then.
      else if (answer.headers.has("refresh")) setTimeout(refresh, 2000);
      else if (answer.status === 200) {
        tag = answer.headers.get("etag") ?? "";
        morph(await answer.text());
        sayCurrent();
      } else if (answer.status === 304) sayCurrent();
      else say(`not live: the server answers ${answer.status}`);
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

  // The server says something every 15 s. What stands before it may delay that, or be silent
  // about an end: without a word the page is not live, and asks by itself.
  const silentMsMax = 40000;
  let heardMs = Number.NEGATIVE_INFINITY;
  const sayCurrent = () => {
    if (performance.now() - heardMs < silentMsMax) say("live", true);
    else say(`as of ${new Date().toLocaleTimeString()}, asked every 30 s`);
  };
  listen(
    (isChange) => {
      heardMs = performance.now();
      if (isChange) void refresh();
    },
    () => {
      heardMs = Number.NEGATIVE_INFINITY;
      say("not live: trying again");
    },
  );
  // Words such as "3 min ago" grow old without a change, and the title of a hidden page tells.
  setInterval(refresh, 30000);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
  filterWhileTyping(() => {
    tag = "";
    void refresh();
  });
})();

/**
 * Calls `onWord` for each word of the server, and `onEnd` when its stream ends; then tries again.
 * A hidden page has no stream: by HTTP/1.1 a browser has six connections for all pages of a server.
 */
function listen(onWord, onEnd) {
  let events;
  const begin = () => {
    const isOpen = events !== undefined && events.readyState !== EventSource.CLOSED;
    if (isOpen || document.visibilityState === "hidden") return;
    events = new EventSource("/events");
    events.addEventListener("alive", () => onWord(false));
    events.addEventListener("changed", () => onWord(true));
    events.addEventListener("error", ({ target }) => {
      onEnd();
      // An answer that is no stream, such as an ingress's 502, ends it for ever.
      if (target.readyState === EventSource.CLOSED) setTimeout(begin, 5000);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") events?.close();
    else begin();
  });
  begin();
}

/** Takes the fields of a form of filters into the address, and calls this. */
function filterWhileTyping(onChange) {
  let typing;
  document.addEventListener("input", ({ target }) => {
    const form = target.closest("form[data-instant]");
    if (form === null) return;
    clearTimeout(typing);
    typing = setTimeout(() => {
      const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
      history.replaceState(null, "", query.size === 0 ? location.pathname : `?${query}`);
      onChange();
    }, 200);
  });
}
