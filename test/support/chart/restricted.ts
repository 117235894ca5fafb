// The Pod Security standard "restricted" as a function: what an admission controller would say
// against a pod. Used by test/chart. Follows
// https://kubernetes.io/docs/concepts/security/pod-security-standards/ and adds a read-only root
// and no mounted token.

interface Security {
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly procMount?: string;
  readonly seccompProfile?: { readonly type?: string };
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly seLinuxOptions?: object;
  readonly sysctls?: readonly { readonly name: string }[];
}

interface Container {
  readonly name: string;
  readonly securityContext?: Security;
  readonly ports?: readonly { readonly hostPort?: number }[];
}

/** The part of a pod's spec that the standard looks at. */
export interface PodSpec {
  readonly securityContext?: Security;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly automountServiceAccountToken?: boolean;
  readonly volumes?: readonly ({ readonly name: string } & Readonly<Record<string, unknown>>)[];
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly ephemeralContainers?: readonly Container[];
}

const volumeKinds = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "persistentVolumeClaim",
  "projected",
  "secret",
];

/** What is against the standard; nothing when the pod may run. */
export function findRestrictedProblems(spec: PodSpec): string[] {
  const of = (condition: boolean, problem: string) => (condition ? [problem] : []);
  return [
    ...of(
      spec.hostNetwork === true || spec.hostPID === true || spec.hostIPC === true,
      "shares a namespace of the host",
    ),
    ...of(spec.automountServiceAccountToken !== false, "mounts the service account's token"),
    ...of((spec.securityContext?.sysctls ?? []).length > 0, "sets sysctls"),
    ...of(spec.securityContext?.runAsUser === 0, "runs as user 0"),
    ...(spec.volumes ?? []).flatMap((volume) => {
      const [kind = "none"] = Object.keys(volume).filter((key) => key !== "name");
      return of(!volumeKinds.includes(kind), `volume ${volume.name} is of the kind ${kind}`);
    }),
    ...[...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])].flatMap((container) =>
      findContainerProblems(container, spec.securityContext ?? {}).map((problem) => `${container.name} ${problem}`),
    ),
  ];
}

function findContainerProblems({ securityContext: own = {}, ports = [] }: Container, pod: Security): string[] {
  const seccomp = (own.seccompProfile ?? pod.seccompProfile)?.type ?? "none";
  const checks: readonly (readonly [boolean, string])[] = [
    [(own.runAsNonRoot ?? pod.runAsNonRoot) !== true, "may run as root"],
    [own.runAsUser === 0, "runs as user 0"],
    [own.privileged === true, "is privileged"],
    [own.allowPrivilegeEscalation !== false, "may escalate privileges"],
    [own.readOnlyRootFilesystem !== true, "may write to its root"],
    [!["RuntimeDefault", "Localhost"].includes(seccomp), `has the seccomp profile ${seccomp}`],
    [own.capabilities?.drop?.includes("ALL") !== true, "keeps capabilities"],
    [(own.capabilities?.add ?? []).some((name) => name !== "NET_BIND_SERVICE"), "adds capabilities"],
    [!["Default", undefined].includes(own.procMount), "unmasks /proc"],
    [ports.some(({ hostPort = 0 }) => hostPort !== 0), "takes a port of the host"],
  ];
  return checks.filter(([wrong]) => wrong).map(([, problem]) => problem);
}
