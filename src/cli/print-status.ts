import type { PartState, StatusPart, StatusTree } from "../procedures/status-tree.ts";
import type { Session } from "./session.ts";

const SYMBOL: Record<PartState, string> = {
  ok: "ok",
  progressing: "..",
  degraded: "!!",
  "not installed": "--",
  unknown: "??",
};

/** As a tree, with what is behind it all and what to do below. */
export async function formatStatus(session: Session, tree: StatusTree): Promise<string> {
  const { createColors } = (await import("picocolors")).default;
  const { green, yellow, red, dim } = createColors(session.flags.color);
  const paint: Record<PartState, (text: string) => string> = {
    ok: green,
    progressing: yellow,
    degraded: red,
    "not installed": dim,
    unknown: yellow,
  };
  const head = (state: PartState) => paint[state](SYMBOL[state]);
  const line = ({ name, state, text, since }: StatusPart) =>
    [
      name,
      state === "ok" || text === "" ? "" : `: ${state}`,
      text ? `  ${text}` : "",
      state !== "ok" && since ? `  (since ${since})` : "",
    ].join("");
  const draw = (parts: readonly StatusPart[], indent: string): string[] =>
    parts.flatMap((part, index) => {
      const last = index === parts.length - 1;
      const branch = `${indent}${last ? "└─" : "├─"} ${head(part.state)} ${part.state === "not installed" && part.text === "" ? `${part.name}: not installed` : line(part)}`;
      return [branch, ...draw(part.parts, `${indent}${last ? "   " : "│  "}`)];
    });
  const { rootCause } = tree;
  return [
    `${head(tree.state)} ${tree.title}`,
    ...draw(tree.parts, ""),
    ...(rootCause
      ? [`cause: ${rootCause.part}: ${rootCause.text}${rootCause.since ? ` (since ${rootCause.since})` : ""}`]
      : []),
    `next:  ${tree.next}`,
    "",
  ].join("\n");
}
