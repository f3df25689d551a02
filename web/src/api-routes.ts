// Method and path of every operation. The compiler checks them against the contract, of which only types are
// imported: its schemas would be larger than the rest of the bundle.
import type { dashboardOperations } from '../../src/contract/dashboard/index.ts'

export type DashboardOperation = (typeof dashboardOperations)[number]

export const routes = {
  'sign-in.options': 'GET /sign-in',
  'sign-in.password': 'POST /sign-in',
  'sign-in.code': 'POST /sign-in/code',
  'sign-in.sso': 'POST /sign-in/sso',
  'sign-in.return': 'GET /sign-in/sso/return',
  'sign-in.request-reset': 'POST /sign-in/forgotten',
  'links.read': 'POST /links/read',
  'links.use': 'POST /links/use',
  'session.read': 'GET /session',
  'session.end': 'POST /sign-out',
  'session.end-all': 'POST /sign-out/everywhere',
  'account.rename': 'POST /account/name',
  'account.password': 'POST /account/password',
  'account.sessions': 'GET /account/sessions',
  'account.end-session': 'DELETE /account/sessions/{id}',
  'two-factor.begin': 'POST /account/second-factor',
  'two-factor.confirm': 'POST /account/second-factor/confirm',
  'two-factor.disable': 'POST /account/second-factor/remove',
  'workspace.read': 'GET /workspaces/{workspace}',
  'keys.list': 'GET /workspaces/{workspace}/keys',
  'keys.create': 'POST /workspaces/{workspace}/keys',
  'keys.revoke': 'DELETE /workspaces/{workspace}/keys/{id}',
  'usage.read': 'GET /workspaces/{workspace}/usage',
  'audit.list': 'GET /workspaces/{workspace}/audit',
  'members.list': 'GET /workspaces/{workspace}/people',
  'members.set-role': 'POST /workspaces/{workspace}/people/{id}',
  'members.remove': 'DELETE /workspaces/{workspace}/people/{id}',
  'members.leave': 'DELETE /workspaces/{workspace}/membership',
  'invitations.create': 'POST /workspaces/{workspace}/invitations',
  'invitations.revoke': 'DELETE /workspaces/{workspace}/invitations/{id}',
  'description.read': 'GET /openapi.json',
} as const satisfies { [O in DashboardOperation as O['id']]: `${O['method']} ${O['path']}` }
