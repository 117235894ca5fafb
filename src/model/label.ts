// Labels: names and values that operators give policies, to choose some by. A selector is the text
// of the labels that a policy must have, `stage=prod,team=hr`: it stands in pauses and commands.

/** What may have labels. */
interface Labelled {
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Whether a policy has all labels of a selector; the empty one fits all. */
export function hasLabels({ labels = {} }: Labelled, selector: string): boolean {
  if (selector === "") return true;
  const own = labelsOf({ labels });
  return selector.split(",").every((label) => own.includes(label));
}

/** The labels of a policy, each as `team=hr`. */
export function labelsOf({ labels = {} }: Labelled): readonly string[] {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

/** The selector of some labels: the same whatever their order. */
export function selectorOf(labels: readonly string[]): string {
  return [...new Set(labels)].sort().join(",");
}
