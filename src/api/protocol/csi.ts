import { flag, many, message, text } from "../../kit/grpc/protobuf.ts";

/** The Container Storage Interface, as far as a driver of volumes needs it that live and end with their pod. */
export const CSI_NODE = "csi.v1.Node";
export const CSI_IDENTITY = "csi.v1.Identity";
/** How a kubelet gets to know a driver: it watches a directory for sockets that answer this. */
export const PLUGIN_REGISTRATION = "pluginregistration.Registration";

const NOTHING = {};

export const GET_PLUGIN_INFO = [NOTHING, { name: text(1), vendor_version: text(2) }] as const;
export const GET_PLUGIN_CAPABILITIES = [NOTHING, NOTHING] as const;
export const PROBE = [NOTHING, { ready: message(1, { value: flag(1) }) }] as const;

export const PLUGIN_INFO = [
  NOTHING,
  { type: text(1), name: text(2), endpoint: text(3), supported_versions: many(text(4)) },
] as const;
export const REGISTRATION_STATUS = [{ plugin_registered: flag(1), error: text(2) }, NOTHING] as const;

export const NODE_GET_INFO = [NOTHING, { node_id: text(1) }] as const;
export const NODE_GET_CAPABILITIES = [NOTHING, NOTHING] as const;
export const NODE_PUBLISH_VOLUME = [{ volume_id: text(1), target_path: text(4), readonly: flag(6) }, NOTHING] as const;
export const NODE_UNPUBLISH_VOLUME = [{ volume_id: text(1), target_path: text(2) }, NOTHING] as const;
