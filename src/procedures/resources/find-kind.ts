import type { Names } from "../../api/names.ts";
import { type V3Place, v3Places } from "../../api/resources/v3-places.ts";
import { errors } from "./errors.ts";

/** The service's own bookkeeping: shown, never written by hand, and on etcd kept elsewhere. */
const BOOKKEEPING = new Set(["ipamBlock", "blockAffinity", "ipamHandle"]);

/** The resource a user means: by kind, plural or short name, in any case, alone or with its group behind a dot. */
export function findKind(text: string, names: Names): V3Place {
  const { group } = names.groups.served;
  const word = text.toLowerCase().replace(new RegExp(`\\.(?:v3\\.)?${group.replaceAll(".", "\\.")}$`), "");
  const places = v3Places(names);
  const found = places.find(({ noun }) => {
    const { kind, plural, shortNames } = names.kinds[noun];
    return [kind.toLowerCase(), plural, ...shortNames].includes(word);
  });
  if (found) return found;
  const known = places.filter(({ noun }) => !BOOKKEEPING.has(noun)).map(({ served }) => served.plural);
  throw errors.RESOURCE_KIND_UNKNOWN(text, known.join(", "));
}
