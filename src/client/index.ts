// The typed client, `adit/client`.
export { type CallOptions, type Client, type ClientOptions, createClient } from './client.ts'
export type { Count } from './exact-json.ts'
export { AditError, type ApiFault, type Fault, type NoAnswer } from './faults.ts'
