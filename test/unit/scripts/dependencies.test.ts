// How the bootstrap sees that node_modules is not what package-lock.json wants.
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { dependenciesState, firstDifference, type LockedPackage } from "../../../scripts/bootstrap/dependencies.mjs";

const machine = { os: "linux", cpu: "x64", libc: "glibc" };
const got = { version: "16.1.0", integrity: "sha512-got" };
const difference = (locked: Record<string, LockedPackage>, installed: Record<string, LockedPackage>) =>
  firstDifference(locked, installed, machine);

describe("firstDifference", () => {
  it("finds none when the same is installed", () => {
    expect(difference({ "": {}, "node_modules/got": got }, { "node_modules/got": got })).toBeUndefined();
  });

  it("finds a package that is missing, has another version or another hash", () => {
    const locked = { "node_modules/got": got };
    expect(difference(locked, {})).toBe("node_modules/got is missing");
    expect(difference(locked, { "node_modules/got": { ...got, version: "16.0.0" } })).toBe(
      "node_modules/got is not 16.1.0",
    );
    expect(difference(locked, { "node_modules/got": { ...got, integrity: "sha512-x" } })).toBe(
      "node_modules/got differs",
    );
  });

  it("finds a package that is not needed any more", () => {
    expect(difference({}, { "node_modules/got": got })).toBe("node_modules/got is no longer wanted");
  });

  it.each([
    ["another system", { os: ["darwin"], cpu: ["x64"] }, undefined],
    ["another processor", { os: ["linux"], cpu: ["arm64"] }, undefined],
    ["another C library", { os: ["linux"], cpu: ["x64"], libc: ["musl"] }, undefined],
    ["any machine", {}, undefined],
    ["this machine", { os: ["linux"], cpu: ["x64"], libc: ["glibc"] }, "node_modules/binding is missing"],
  ])("looks at a missing optional package for %s", (_, made, expected) => {
    expect(difference({ "node_modules/binding": { ...got, optional: true, ...made } }, {})).toBe(expected);
  });
});

describe("dependenciesState", () => {
  it("goes by the contents: a lock file that was only touched is fresh", () => {
    const root = mkdtempSync(join(tmpdir(), "syncline-deps-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages: { "": {}, "node_modules/got": got } }));
    expect(dependenciesState(root)).toEqual({ fresh: false, why: "not installed yet" });

    mkdirSync(join(root, "node_modules"));
    const installed = join(root, "node_modules", ".package-lock.json");
    writeFileSync(installed, JSON.stringify({ packages: { "node_modules/got": got } }));
    utimesSync(installed, 1, 1);
    expect(dependenciesState(root)).toEqual({ fresh: true, why: "" });
  });
});
