import { describe, expect, it } from "vitest";
import { render } from "../support/chart/helm.ts";
import { podSpecsOf } from "../support/chart/pod-specs.ts";
import { findRestrictedProblems } from "../support/chart/restricted.ts";
import { least } from "../support/chart/value-sets.ts";

/** A pod of the chart, in which something is changed. */
async function problemsWith(change: { readonly pod?: object; readonly container?: object }): Promise<string[]> {
  const [pod] = (await render(least)).flatMap(podSpecsOf);
  const spec = structuredClone(pod?.spec ?? expect.fail("no pod"));
  Object.assign(spec, change.pod);
  Object.assign(spec.containers[0] ?? {}, change.container);
  return findRestrictedProblems(spec);
}

describe("the check for Pod Security restricted", () => {
  it("has nothing against the pod as it is", async () => {
    expect(await problemsWith({})).toEqual([]);
  });

  const strict = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } };
  it.each([
    [{ pod: { hostNetwork: true } }, "shares a namespace of the host"],
    [{ pod: { automountServiceAccountToken: undefined } }, "mounts the service account's token"],
    [{ pod: { volumes: [{ name: "disk", hostPath: { path: "/" } }] } }, "volume disk is of the kind hostPath"],
    [{ pod: { securityContext: { seccompProfile: { type: "RuntimeDefault" } } } }, "syncline may run as root"],
    [{ pod: { securityContext: { runAsNonRoot: true } } }, "syncline has the seccomp profile none"],
    [{ container: { securityContext: { ...strict, runAsUser: 0 } } }, "syncline runs as user 0"],
    [{ container: { securityContext: { ...strict, privileged: true } } }, "syncline is privileged"],
    [
      { container: { securityContext: { ...strict, allowPrivilegeEscalation: undefined } } },
      "syncline may escalate privileges",
    ],
    [
      { container: { securityContext: { ...strict, readOnlyRootFilesystem: false } } },
      "syncline may write to its root",
    ],
    [
      { container: { securityContext: { ...strict, capabilities: { drop: ["NET_RAW"] } } } },
      "syncline keeps capabilities",
    ],
    [
      { container: { securityContext: { ...strict, capabilities: { drop: ["ALL"], add: ["SYS_TIME"] } } } },
      "syncline adds capabilities",
    ],
    [{ container: { ports: [{ hostPort: 80 }] } }, "syncline takes a port of the host"],
  ])("finds %j", async (change, problem) => {
    expect(await problemsWith(change)).toEqual([problem]);
  });
});
