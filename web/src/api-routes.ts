// Method and path of every operation, and the prefix of the API. The build (web/vite.config.ts) fills them in
// from the contract, of which the dashboard imports only types: its schemas would be larger than the rest.
import type { apis } from '../../src/contract/apis.ts'

export type DashboardOperation = (typeof apis.dashboard.operations)[number]

declare const ROUTES: { [O in DashboardOperation as O['id']]: `${O['method']} ${O['path']}` }
declare const API_PREFIX: string

export const routes = ROUTES
export const apiPrefix = API_PREFIX
