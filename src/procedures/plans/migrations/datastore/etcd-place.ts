import { parseEndpoints } from "../../../../datastore/config.ts";
import type { EtcdPlace } from "../../../migrations/datastore/etcd-place.ts";
import type { Observation } from "../../../observation.ts";
import { type Container, type ManifestWorkload, manifestView, variablesOf } from "../operator/manifest-view.ts";
import { errors } from "./errors.ts";

const FILES = { ca: "ETCD_CA_CERT_FILE", cert: "ETCD_CERT_FILE", key: "ETCD_KEY_FILE" } as const;

interface Mounts {
  volumeMounts?: { name: string; mountPath: string }[];
}
interface Volumes {
  volumes?: { name: string; secret?: { secretName?: string } }[];
}

/** Where the agents find etcd, by what the manifest in the cluster says. */
export function etcdPlaceOf({ names, service }: Pick<Observation, "names" | "service">): EtcdPlace {
  const agents = service.nodeAgents as ManifestWorkload | undefined;
  const view = manifestView(
    [agents, service.settings].flatMap((object) => object ?? []),
    names,
  );
  const variables = variablesOf(view.agent, view.settings, names);
  const endpoints = parseEndpoints(variables.get("ETCD_ENDPOINTS") ?? "", (problem) =>
    errors.MIGRATE_DATASTORE_ETCD_UNSET("ETCD_ENDPOINTS", problem),
  );
  const mounts = (view.agent as Mounts | undefined)?.volumeMounts ?? [];
  const volumes = (agents?.spec.template.spec as Volumes | undefined)?.volumes ?? [];
  const files: { ca?: string; cert?: string; key?: string } = {};
  let name: string | undefined;
  for (const [file, variable] of Object.entries(FILES)) {
    const path = variables.get(variable);
    if (!path) continue;
    const mount = mounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
    name = volumes.find((volume) => volume.name === mount?.name)?.secret?.secretName;
    if (!mount || !name) throw errors.MIGRATE_DATASTORE_ETCD_UNSET(variable, `${path} is in no Secret that is mounted`);
    files[file as keyof typeof files] = path.slice(mount.mountPath.length + 1);
  }
  const namespace = agents?.metadata.namespace ?? names.namespaces.orchestratorSystem;
  const user = userOf(view.agent?.env ?? [], namespace);
  return { endpoints, files, ...(name !== undefined && { secret: { namespace, name } }), ...(user && { user }) };
}

const USER = "ETCD_USERNAME";
const PASSWORD = "ETCD_PASSWORD";

/** Both from one Secret: a plan, which people keep and send on, holds no password. */
function userOf(env: NonNullable<Container["env"]>, namespace: string): EtcdPlace["user"] {
  const [name, password] = [USER, PASSWORD].map((variable) => env.find((one) => one.name === variable));
  if (!name?.valueFrom && !name?.value) return undefined;
  const [of, secret] = [name.valueFrom?.secretKeyRef, password?.valueFrom?.secretKeyRef];
  if (!of?.name || secret?.name !== of.name)
    throw errors.MIGRATE_DATASTORE_ETCD_UNSET(`${USER} and ${PASSWORD}`, "they are not from keys of one Secret");
  return { secret: { namespace, name: of.name }, name: of.key, password: secret.key };
}
