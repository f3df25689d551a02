// The typed client, `adit/client`.
export { type Client, createClient } from './create.ts'
export type { Count } from './exact-json.ts'
export { AditError, type ApiFault, type Fault, type NoResponse } from './faults.ts'
export type { CallOptions, ClientOptions } from './transport.ts'
