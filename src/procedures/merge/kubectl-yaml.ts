import type { DocumentOptions, ParseOptions, SchemaOptions, Tags } from "yaml";

/** In YAML 1.1 these are times and dates; kubectl's parser reads them as texts. */
const NOT_READ = [
  "tag:yaml.org,2002:timestamp",
  "tag:yaml.org,2002:set",
  "tag:yaml.org,2002:omap",
  "tag:yaml.org,2002:pairs",
];

/**
 * Manifests are read as kubectl reads them: YAML 1.1, in which `0400` is octal and `yes` a boolean. Read otherwise, the mode of a key file
 * would become another one.
 */
export const KUBECTL_YAML: ParseOptions & DocumentOptions & SchemaOptions = {
  version: "1.1",
  customTags: (tags: Tags) =>
    tags.filter((tag) => {
      if (typeof tag === "string") return true;
      return !NOT_READ.includes(tag.tag) && !("format" in tag && tag.format === "TIME");
    }),
};
