import { stringify } from "yaml";
import { customResourceDefinitions } from "./schema/crd.ts";

const HEADER = "# Generated from src/api/resources. Do not edit: change the resource and run `npm run generate`.\n";

/** Files of the repository that are printed from the nouns, by path. */
export function renderGeneratedFiles(): Record<string, string> {
  // Resources share parts (rules, conditions); a manifest must not, so no aliases.
  const documents = customResourceDefinitions().map((crd) =>
    // kubectl and helm read YAML 1.1, in which a plain `Off` is a boolean.
    stringify(crd, { aliasDuplicateObjects: false, lineWidth: 0, compat: "yaml-1.1" }),
  );
  return { "manifests/operator-crds.yaml": HEADER + documents.map((document) => `---\n${document}`).join("") };
}
