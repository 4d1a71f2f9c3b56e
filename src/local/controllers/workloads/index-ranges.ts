/** `0-2,5` for 0, 1, 2 and 5. */
export function formatIndexes(indexes: Iterable<number>): string {
  const ranges: [number, number][] = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && last[1] === index - 1) last[1] = index;
    else ranges.push([index, index]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

export function parseIndexes(text = ""): number[] {
  return text
    .split(",")
    .filter((part) => part !== "")
    .flatMap((part) => {
      const [from = 0, to = from] = part.split("-").map(Number);
      return Array.from({ length: to - from + 1 }, (_, i) => from + i);
    });
}
