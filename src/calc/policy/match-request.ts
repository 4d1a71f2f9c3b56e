import type { AccountSet, DataplaneModel, HttpPath, PacketRequest, RequestMatch } from "../model.ts";

type AccountSets = DataplaneModel["accountSets"];

/** Whether everything the rule asks of the request holds. What is no HTTP request never matches a rule that asks for one. */
export function matchesRequest(rule: RequestMatch, request: PacketRequest, sets: AccountSets): boolean {
  const { httpMethods, httpPaths, srcAccountSets, dstAccountSets } = rule;
  const { http, sourceAccount, destinationAccount } = request;
  if ((httpMethods || httpPaths) && !http) return false;
  if (http && httpMethods && !httpMethods.includes("*") && !httpMethods.includes(http.method)) return false;
  if (http && httpPaths && !hasPath(httpPaths, http.path)) return false;
  return isInSets(srcAccountSets, sourceAccount, sets) && isInSets(dstAccountSets, destinationAccount, sets);
}

/** An account that is not proved is not asked for: addresses decide alone, as in the data planes. */
function isInSets(ids: readonly string[] | undefined, account: string | undefined, sets: AccountSets): boolean {
  if (account === undefined || !ids) return true;
  return ids.every((id) => {
    const set = sets.get(id);
    return set !== undefined && membersOf(set).has(account);
  });
}

/** As with the tables of addresses: values of the model never change. */
const members = new WeakMap<AccountSet, ReadonlySet<string>>();

function membersOf(set: AccountSet): ReadonlySet<string> {
  const known = members.get(set) ?? new Set(set.members);
  members.set(set, known);
  return known;
}

function hasPath(wanted: readonly HttpPath[], target: string): boolean {
  const path = target.split(/[?#]/, 1)[0] ?? "";
  if (!path.startsWith("/")) return false;
  return wanted.some((one) =>
    "exact" in one ? path === one.exact : path.startsWith(one.prefix) && !leavesItsPlace(path),
  );
}

/** Who serves `/public/../admin` may serve `/admin`: a prefix says nothing of such a path, however its dots and slashes are written. */
function leavesItsPlace(path: string): boolean {
  const plain = path.replace(/%2e/gi, ".").replace(/%2f|%5c|\\/gi, "/");
  return plain.split("/").some((segment) => /^\.{1,2}(?:;|$)/.test(segment));
}
