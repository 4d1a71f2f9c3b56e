export type { ApiRequest, ApiResponse, Transport } from "../api/transport.ts";
