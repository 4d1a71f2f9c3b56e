import type { PartState, StatusPart, StatusTree } from "../../../procedures/status-tree.ts";
import { Styled, styled } from "../../printable.ts";
import { hanging, wrapped } from "../../printer.ts";
import type { Session } from "../../session.ts";

const SYMBOL: Record<PartState, string> = {
  ok: "ok",
  progressing: "..",
  degraded: "!!",
  "not installed": "--",
  unknown: "??",
};

/** As a tree, with the root cause and the next command below. */
export async function formatStatus(session: Session, tree: StatusTree): Promise<Styled> {
  const { createColors } = (await import("picocolors")).default;
  const { green, yellow, red, dim } = createColors(session.flags.color);
  const paint: Record<PartState, (text: string) => string> = {
    ok: green,
    progressing: yellow,
    degraded: red,
    "not installed": dim,
    unknown: yellow,
  };
  const width = session.config.outColumns;
  const head = (state: PartState) => Styled.raw(paint[state](SYMBOL[state]));
  const draw = async (parts: readonly StatusPart[], indent: string): Promise<string[]> => {
    const lines = parts.map(async (part, index) => {
      const last = index === parts.length - 1;
      const below = `${indent}${last ? "   " : "│  "}`;
      const first = styled`${indent}${last ? "└─" : "├─"} ${head(part.state)} `;
      return [
        ...(await hanging(first, partText(part), { width, below: `${below}   ` })),
        ...(await checkedLines(part, `${below}   `)),
        ...(await draw(part.parts, below)),
      ];
    });
    return (await Promise.all(lines)).flat();
  };
  const checkedLines = async ({ checked }: StatusPart, indent: string): Promise<string[]> => {
    if (!checked || session.flags.v === 0) return [];
    const lines = [`checked ${checked.at}`, ...checked.what];
    const drawn = lines.map((line) => hanging(styled`${indent}`, line, { width, below: `${indent}  ` }));
    return (await Promise.all(drawn)).flat();
  };
  const { rootCause } = tree;
  const cause = rootCause && `${rootCause.part}: ${rootCause.text}${sinceText(rootCause.since)}`;
  return Styled.raw(
    [
      ...(await hanging(styled`${head(tree.state)} `, tree.title, { width })),
      ...(await draw(tree.parts, "")),
      ...(cause === undefined ? [] : await wrapped(cause, { first: "cause: ", width })),
      ...(await wrapped(tree.next, { first: "next:  ", width })),
      "",
    ].join("\n"),
  );
}

function partText({ name, state, text, since }: StatusPart): string {
  if (state === "ok") return text ? `${name}  ${text}` : name;
  if (text === "") return state === "not installed" ? `${name}: not installed` : `${name}${sinceText(since)}`;
  return `${name}: ${state}  ${text}${sinceText(since)}`;
}

function sinceText(since: string | undefined): string {
  return since ? `  (since ${since})` : "";
}
