import { defineErrors } from "../../kit/errors.ts";

/** What can be wrong with the manifests an upgrade merges. */
export const errors = defineErrors({
  MERGE_FILE_UNREADABLE: {
    means: "A manifest given to an upgrade is not YAML.",
    example: ["vendor.yaml", "bad indentation at line 7"],
    say: (file: string, problem: string) => `${file} is not YAML: ${problem}`,
    fix: () => "repair the file, or omit it: then your edits are read from the cluster",
    exitCode: 64,
  },
  MERGE_FILE_NOT_OBJECTS: {
    means: "A manifest given to an upgrade has a document that is not a Kubernetes object.",
    example: ["vendor.yaml", "document 3"],
    say: (file: string, where: string) =>
      `${file} has ${where}, which is not an object with apiVersion, kind and a name`,
    fix: () => "give the manifest as you applied it",
    exitCode: 64,
  },
  MERGE_FILE_TWICE: {
    means: "A manifest given to an upgrade has the same object twice, so it is not clear which one has your edits.",
    example: ["vendor.yaml", "ConfigMap kube-system/vendor-config"],
    say: (file: string, object: string) => `${file} has ${object} twice`,
    fix: () => "keep the one you applied last",
    exitCode: 64,
  },
});
