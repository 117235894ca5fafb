// Which masks a run picks (`fromMasks`). Pure.

/** The masks whose sync jobs a run takes when the slot is due. `name` is a pattern with * and ?. */
export interface MaskFilter {
  readonly type?: string;
  readonly name?: string;
}

/** Whether a mask is picked; a mask without a name has the empty one. */
export function matchesMask(
  { type, name }: MaskFilter,
  mask: { readonly type?: string | null | undefined; readonly name?: string | null | undefined },
): boolean {
  return (type === undefined || mask.type === type) && (name === undefined || fitsPattern(mask.name ?? "", name));
}

/**
 * Whether a text fits a pattern: * is any text, ? one character. A part that does not fit moves
 * the last * only, so that no name is slow.
 */
function fitsPattern(text: string, pattern: string): boolean {
  const [own, wanted] = [[...text], [...pattern]];
  let [at, place, star, mark] = [0, 0, -1, 0];
  while (at < own.length) {
    if (wanted[place] === "*") [star, mark, place] = [place, at, place + 1];
    else if (wanted[place] === "?" || wanted[place] === own[at]) [at, place] = [at + 1, place + 1];
    else if (star === -1) return false;
    else [mark, at, place] = [mark + 1, mark + 1, star + 1];
  }
  return wanted.slice(place).every((sign) => sign === "*");
}
