import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorctl } from "../../src/cli/testing/fake-context.ts";

/** The command line and the files are read before anything is asked of a cluster or an etcd, so none is needed here. */
let folder: string;
const FILES = {
  "broken.yaml": "a: [",
  "list.yaml": "- 1\n",
  "empty.yaml": "---\n",
  "nameless.yaml": "apiVersion: vendor.io/v3\nkind: Tier\nmetadata: {}\n",
  "kindless.yaml": "metadata: { name: a }\n",
  "foreign.yaml": "apiVersion: v1\nkind: Pod\nmetadata: { name: a }\n",
  "placed.yaml": "apiVersion: vendor.io/v3\nkind: Tier\nmetadata: { name: a, namespace: b }\n",
  "plans.yaml":
    "apiVersion: procedures.vendor.io/v1\nkind: Plan\n---\napiVersion: vendor.io/v3\nkind: Tier\nmetadata: { name: a }\n",
  "not-pem.crt": "hello",
  "unknown.cfg": "store: etcd\n",
  "list.cfg": "- etcd\n",
  "wrong.cfg": "datastore: files\n",
  "no-field.cfg": "datastore: etcd\netcd: { endpoint: http://a:1 }\n",
  "no-endpoints.cfg": "datastore: etcd\n",
  "number.cfg": "datastore: etcd\netcd: { endpoints: 5 }\n",
};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "bad-input-"));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ETCD = "--datastore etcd --etcd-endpoints http://127.0.0.1:1";

describe("what migrate, get, apply, delete, label and patch refuse", () => {
  it.each<[line: string, code: string, sentence: string]>([
    ["migrate owner-references --phase middle", "BAD_VALUE", '--phase cannot be "middle"'],
    ["migrate owner-references --save-to=", "BAD_VALUE", '--save-to cannot be ""'],
    ["migrate owner-references now", "USAGE", "too many arguments"],
    ["migrate host-endpoints --accept-policies=yes", "UNKNOWN_FLAG", "unknown option '--accept-policies=yes'"],
    ["migrate host-endpoints --delete-temporary", "UNKNOWN_FLAG", "unknown option '--delete-temporary'"],
    ["migrate sidecars", "USAGE", "required option '--mesh-version <version>' not specified"],
    ["migrate sidecars --mesh-version ../x", "BAD_VALUE", '--mesh-version cannot be "../x"'],
    ["migrate sidecars --mesh-version latest", "BAD_VALUE", '--mesh-version cannot be "latest"'],
    ["migrate sidecars --mesh-version 1.15 --manifest-url=", "BAD_VALUE", '--manifest-url cannot be ""'],
    ["migrate sidecars --mesh-version 1.15 --dry-run=maybe", "BAD_VALUE", '--dry-run cannot be "maybe"'],
    ["migrate encapsulation", "USAGE", "required option '--to <vxlan|vxlan-cross-subnet>' not specified"],
    ["migrate encapsulation --to ipip", "BAD_VALUE", '--to cannot be "ipip"'],
    ["migrate encapsulation --to vxlan --pool=", "BAD_VALUE", '--pool cannot be ""'],
    ["migrate encapsulation --to vxlan --budget speed=1", "BAD_VALUE", '--budget cannot be "speed=1"'],
    ["migrate operator now", "USAGE", "too many arguments"],
    ["migrate operator --accept-loss=", "BAD_VALUE", '--accept-loss cannot be ""'],
    ["migrate operator --canary a --no-waves", "USAGE", "--canary and --no-waves exclude each other"],
    ["migrate operator --wave-size 0", "BAD_VALUE", '--wave-size cannot be "0"'],
    ["migrate operator --budget speed=1", "BAD_VALUE", '--budget cannot be "speed=1"'],
    ["migrate operator --force=yes", "UNKNOWN_FLAG", "unknown option '--force=yes'"],
    ["migrate datastore now", "USAGE", "too many arguments"],
    ["migrate datastore --drop-old-data=yes", "UNKNOWN_FLAG", "unknown option '--drop-old-data=yes'"],
    ["migrate datastore --drop-old-data --canary a", "USAGE", "--canary and --drop-old-data exclude each other"],
    ["migrate datastore --drop-old-data --no-waves", "USAGE", "--no-waves and --drop-old-data exclude each other"],
    ["migrate mesh", "UNKNOWN_COMMAND", "unknown command 'mesh'"],
    ["get", "USAGE", "missing required argument"],
    [`get pods ${ETCD}`, "RESOURCE_KIND_UNKNOWN", 'there is no v3 resource "pods"'],
    [`get tiers,pods ${ETCD}`, "RESOURCE_KIND_UNKNOWN", 'there is no v3 resource "pods"'],
    [`get tiers/a/b ${ETCD}`, "USAGE", '"tiers/a/b" is not KIND/NAME'],
    [`get tiers,gnp a ${ETCD}`, "USAGE", "names go with one kind"],
    [`get tiers a -l x=y ${ETCD}`, "USAGE", "names and -l exclude each other"],
    [`get netset a -A ${ETCD}`, "USAGE", "names and -A exclude each other"],
    ["get tiers -o html", "BAD_VALUE", '--output cannot be "html"'],
    ["get tiers -o junit", "USAGE", "-o junit is for check, not for get"],
    ["get tiers -l=", "BAD_VALUE", '--selector cannot be ""'],
    ["get tiers --datastore files", "BAD_VALUE", '--datastore cannot be "files"'],
    ["get tiers --datastore etcd", "DATASTORE_CONFIG_BAD", "needs the address of at least one etcd"],
    [
      "get tiers --datastore etcd --etcd-endpoints 10.0.0.1",
      "DATASTORE_CONFIG_BAD",
      '"10.0.0.1" is not an address such as',
    ],
    [
      `get tiers ${ETCD} --etcd-cert DIR/not-pem.crt`,
      "DATASTORE_CONFIG_BAD",
      "a client certificate and its key go together",
    ],
    [`get tiers ${ETCD} --etcd-ca DIR/missing.crt`, "DATASTORE_CONFIG_BAD", "cannot be read: ENOENT"],
    [`get tiers ${ETCD} --etcd-ca DIR/not-pem.crt`, "DATASTORE_CONFIG_BAD", "is no PEM file"],
    ["get tiers --config DIR/missing.cfg", "DATASTORE_CONFIG_BAD", "cannot be read: ENOENT"],
    ["get tiers --config DIR/broken.yaml", "DATASTORE_CONFIG_BAD", "Flow sequence"],
    ["get tiers --config DIR/unknown.cfg", "DATASTORE_CONFIG_BAD", 'it has no field "store"'],
    ["get tiers --config DIR/list.cfg", "DATASTORE_CONFIG_BAD", "is not a section of fields"],
    ["get tiers --config DIR/wrong.cfg", "DATASTORE_CONFIG_BAD", '"files" is no datastore'],
    ["get tiers --config DIR/no-field.cfg", "DATASTORE_CONFIG_BAD", 'etcd has no field "endpoint"'],
    ["get tiers --config DIR/no-endpoints.cfg", "DATASTORE_CONFIG_BAD", "at least one etcd"],
    ["get tiers --config DIR/number.cfg", "DATASTORE_CONFIG_BAD", "etcd.endpoints is not a text"],
    ["apply", "USAGE", "-f is missing"],
    ["apply -f=", "BAD_VALUE", '--filename cannot be ""'],
    ["apply -f DIR/missing.yaml", "RESOURCE_FILE_UNREADABLE", "it does not exist"],
    ["apply -f -", "RESOURCE_FILE_UNREADABLE", "standard input cannot be read: there is none"],
    ["apply -f DIR/broken.yaml", "RESOURCE_FILE_BAD", "Flow sequence"],
    ["apply -f DIR/list.yaml", "RESOURCE_FILE_BAD", "it is not an object with apiVersion and kind"],
    ["apply -f DIR/empty.yaml", "RESOURCE_FILE_BAD", "there is no object in it"],
    ["apply -f DIR/nameless.yaml", "RESOURCE_FILE_BAD", "the Tier has no name"],
    ["apply -f DIR/kindless.yaml", "RESOURCE_FILE_BAD", "apiVersion or kind is missing"],
    ["apply -f DIR/plans.yaml", "RESOURCE_FILE_BAD", "a plan is applied alone"],
    [`apply -f DIR/foreign.yaml ${ETCD}`, "RESOURCE_FILE_BAD", "Pod in v1 is no v3 resource; use kubectl"],
    [`apply -f DIR/placed.yaml ${ETCD}`, "RESOURCE_FILE_BAD", "a Tier belongs to no namespace"],
    ["apply tier.yaml", "USAGE", "too many arguments"],
    [`delete ${ETCD}`, "USAGE", "name a kind of v3 resource"],
    [`delete tiers ${ETCD}`, "USAGE", "delete needs names, -l, --all or -f"],
    ["delete tiers a -f DIR/placed.yaml", "USAGE", "delete takes files or names, not both"],
    ["delete tiers a --dry-run=maybe", "BAD_VALUE", '--dry-run cannot be "maybe"'],
    ["label tiers a", "USAGE", "label needs at least one KEY=VALUE or KEY-"],
    ["label tiers a _x=y", "BAD_VALUE", 'a label cannot be "_x=y"'],
    ["label tiers a x=y=z", "BAD_VALUE", 'a label cannot be "x=y=z"'],
    [`label tiers x=y ${ETCD}`, "USAGE", "label needs names, -l or --all"],
    ["patch tiers a", "USAGE", "patch needs either -p or --patch-file"],
    ["patch tiers a -p {} --patch-file DIR/list.yaml", "USAGE", "patch needs either -p or --patch-file"],
    ["patch tiers a --patch-file DIR/missing.json", "RESOURCE_FILE_UNREADABLE", "ENOENT"],
    ["patch tiers a --patch-file DIR/broken.yaml", "RESOURCE_PATCH_BAD", "Flow sequence"],
    ["patch tiers a -p 5", "RESOURCE_PATCH_BAD", "a merge patch is an object"],
    ["patch tiers a --type json -p {}", "RESOURCE_PATCH_BAD", "a JSON patch is a list of operations"],
    [
      "patch tiers a --type strategic -p {}",
      "RESOURCE_PATCH_STRATEGIC",
      "v3 resources do not support strategic merge patches",
    ],
    ["patch tiers a --type apply -p {}", "BAD_VALUE", '--type cannot be "apply"'],
    [`patch tiers a b -p {} ${ETCD}`, "USAGE", "patch takes one kind and one name"],
  ])("vendorctl %s", async (line, code, sentence) => {
    const words = line
      .replaceAll("DIR", folder)
      .split(" ")
      .filter((word) => word !== "");
    const { exit, out, err } = await vendorctl(words);
    expect({ exit, out }).toEqual({ exit: 64, out: "" });
    expect(err).toContain(sentence);
    expect(err).toContain(`[${code}]`);
  });

  it("an etcd that does not answer is its own failure", async () => {
    const { exit, err } = await vendorctl(["get", "tiers", ...ETCD.split(" ")]);
    expect({ exit, err }).toMatchObject({ exit: 69, err: expect.stringContaining("[ETCD_UNREACHABLE]") });
  });
});
