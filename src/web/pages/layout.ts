// The frame of every page: head, navigation, foot. Only text that templates escape comes in here.
import { html } from "hono/html";
import { version } from "../../core/version.ts";
import { assetPath } from "../assets.ts";
import type { Caller } from "../identity.ts";
import type { Html } from "./marks.ts";

/** What a page says of itself. */
export interface Frame {
  readonly title: string;
  /** The entry of the navigation that leads here. */
  readonly here?: keyof typeof places;
  /** Who looks; undefined: before a sign-in. */
  readonly caller?: Caller | undefined;
  readonly canSignOut?: boolean;
  /** What was asked cannot change: the page is not kept up to date. */
  readonly isStatic?: true;
}

const places = {
  now: ["/", "Now"],
  policies: ["/policies", "Policies"],
  failed: ["/failed", "Failed"],
  next: ["/next", "Next 24 h"],
  feeds: ["/feeds", "Feeds"],
  services: ["/services", "Services"],
  audit: ["/audit", "Audit"],
  changes: ["/changes", "Changes"],
} as const;

/** Not for callers who are held to labels. */
const wholePlaces: ReadonlySet<string> = new Set<keyof typeof places>(["feeds", "changes"]);

/** A whole page. */
export function page(frame: Frame, content: Html): Html {
  const { title, here, caller, canSignOut = false, isStatic } = frame;
  const shown = Object.entries(places).filter(([name]) => caller?.labels === undefined || !wholePlaces.has(name));
  const links = shown.map(
    ([name, [path, label]]) =>
      html`<li><a href="${path}"${name === here ? html` aria-current="page"` : ""}>${label}</a></li>`,
  );
  const signOut = canSignOut
    ? html`<form method="post" action="/sign-out"><button class="plain">Sign out</button></form>`
    : "";
  const bar =
    caller === undefined
      ? ""
      : html`<nav aria-label="Views"><ul>${links}</ul></nav><div class="who"><span class="live" data-live role="status"></span><span>${caller.name}, ${caller.scope === "read" ? "read-only" : `may ${caller.scope === "admin" ? "administer" : caller.scope}`}</span>${signOut}</div>`;
  const script =
    caller === undefined || isStatic
      ? ""
      : html`<script src="${assetPath("idiomorph.js")}" defer></script><script src="${assetPath("live.js")}" defer></script>`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Syncline</title>
<link rel="icon" href="${assetPath("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="${assetPath("style.css")}">
${script}
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header class="top"><a class="home" href="/"><img src="${assetPath("icon.svg")}" alt="" width="22" height="22">Syncline</a>${bar}</header>
<main id="main" tabindex="-1"${isStatic ? html` data-static` : ""}>${content}</main>
<footer>Syncline ${version}. Now is by the clock of Redis; a policy's times are in its own zone. <a href="/api">API</a></footer>
</body>
</html>`;
}
