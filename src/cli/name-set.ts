import { calicoNames, type Names, vendorNames } from "../api/names.ts";
import type { Session } from "./session.ts";

/** The words `--names` asks for. */
export function nameSet({ flags }: Session): Names {
  return flags.names === "calico" ? calicoNames : vendorNames;
}
