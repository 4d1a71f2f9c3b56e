import { defineErrors } from "../../kit/errors.ts";

/** What can be wrong with the manifests an upgrade merges. */
export const errors = defineErrors({
  MERGE_FILE_UNREADABLE: {
    args: ["file", "problem"],
    say: (file: string, problem: string) => `${file} is not YAML: ${problem}`,
    fix: () => "repair the file, or omit it: then your edits are read from the cluster",
    exitCode: 64,
  },
  MERGE_FILE_NOT_OBJECTS: {
    args: ["file", "where"],
    say: (file: string, where: string) =>
      `${file} has ${where}, which is not an object with apiVersion, kind and a name`,
    fix: () => "give the manifest as you applied it",
    exitCode: 64,
  },
  MERGE_FILE_TWICE: {
    args: ["file", "object"],
    say: (file: string, object: string) => `${file} has ${object} twice`,
    fix: () => "keep the one you applied last",
    exitCode: 64,
  },
});
