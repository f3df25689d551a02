// The typed client, `adit/client`.
export { type Client, type ClientOptions, createClient } from './create.ts'
export type { Count } from './exact-json.ts'
export { AditError, type ApiFault, type Fault, type NoResponse } from './faults.ts'
export type { CallOptions } from './transport.ts'
