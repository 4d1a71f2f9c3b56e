import { stringify } from "yaml";

/** In a file of its own, so that the library is loaded only for `-o yaml`. */
export function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}
