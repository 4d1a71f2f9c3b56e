import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { CLUSTER_KIND_NAMES } from "../../src/api/tables/cluster-kinds.ts";
import { eightSteps } from "../support/eight-steps.ts";
import { sectionsOf, TRANSCRIPTS, typedIn } from "../support/transcripts.ts";

const sections = new Map(sectionsOf(readFileSync(TRANSCRIPTS, "utf8")));

it.each(CLUSTER_KIND_NAMES)("the transcript of %s is of the commands that are tested", (kind) => {
  const typed = eightSteps(kind).flatMap(({ lines }) => lines.map(({ line }) => line));
  expect(typedIn(sections.get(kind) ?? "")).toEqual(typed);
});
