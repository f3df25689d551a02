// The registry of all APIs: prefix, operations and OpenAPI document of each. Routes, metrics, documents,
// clients and the tests of all operations iterate it; operations that are not listed here are not served.
import { dashboardOperations } from './dashboard/index.ts'
import { deviceOperations } from './device.ts'
import { edgeOperations } from './edge/operations.ts'
import { healthOperations } from './health.ts'
import { oauthOperations } from './oauth.ts'
import type { ApiDocument } from './openapi.ts'
import type { Operation } from './operation.ts'
import { type Variant, variants } from './variants.ts'
import { workspaceOperations } from './workspace/index.ts'

export interface Api {
  /** The label in metrics. The variants of the public API share it, because a server runs one of them. */
  readonly name: string
  readonly prefix: string
  readonly operations: readonly Operation[]
  /** Absent if the API has no OpenAPI document. */
  readonly document?: ApiDocument
}

const DESCRIPTION_GROUP = 'This document, in machine-readable form.'

const keyManagement: Record<Variant, string> = {
  A: 'API keys can be created and revoked through this API and in the dashboard.',
  B: 'This API is read-only: admins and owners create and revoke API keys in the dashboard.',
}

const publicDocument = (variant: Variant): ApiDocument => ({
  title: 'Adit API',
  version: '1',
  description: `Read a workspace, its API keys and its usage. ${keyManagement[variant]}

**Authentication.** Send an API key as a bearer token: \`Authorization: Bearer adit_…\`. Every request is
scoped to the workspace of its key. In paths and fields of this API an API key is called \`token\`.

**Errors.** Every error is a JSON object with a code in \`error\`, and a \`message\` or \`details\` if useful.
Rely on the code: texts may change.

**Caching.** \`GET\` responses have an \`ETag\`; send it in \`If-None-Match\` to get 304 while nothing has
changed.

**Cross-origin requests.** Any web page may call this API (\`Access-Control-Allow-Origin: *\`).

\`HEAD\` is supported for every \`GET\`. Any other path or method returns 404.`,
  credential: 'An API key of a workspace: `Authorization: Bearer adit_…`.',
  crossOrigin: true,
  groups: {
    workspace: 'The workspace of the API key.',
    tokens: 'API keys of the workspace. A raw key is shown once, when it is created.',
    usage: 'Traffic through the tunnels of the workspace.',
    description: DESCRIPTION_GROUP,
  },
})

const workspaceDocument: ApiDocument = {
  title: 'Adit workspace API',
  version: '1',
  description: `The tunnels of a workspace: list, read and close open tunnels, and list tunnel names and edges.

**Authentication.** Send an API key as a bearer token: \`Authorization: Bearer adit_…\`. Every request is
scoped to the workspace of its key.

**Variants.** If the server runs variant B, API keys only read: operations that change something return 403
with the address of the dashboard, where admins and owners can do it.

**Errors** have the same form as those of the API under \`/api/v1\`. A tunnel of another workspace looks
exactly like one that does not exist.`,
  credential: 'An API key of a workspace: `Authorization: Bearer adit_…`.',
  crossOrigin: false,
  groups: {
    tunnels: 'Open tunnels of the workspace.',
    names: 'Tunnel names of the workspace.',
    edges: 'Edges that may carry tunnels of the workspace.',
    edge: 'The edge that tunnel clients connect to.',
    description: DESCRIPTION_GROUP,
  },
}

const edgeDocument: ApiDocument = {
  title: 'Adit edge API',
  version: '1',
  description: `For edges, the servers that carry tunnels: verify API keys, follow revocations and report
usage.

**Authentication.** Send the credential of the edge as a bearer token: \`Authorization: Bearer adit_edge_…\`.
The operator creates it with \`adit admin edge create\`. API keys of workspaces are not accepted.`,
  credential:
    'The credential of an edge: `Authorization: Bearer adit_edge_…`. If that header has the credentials of ' +
    'the proxied request, send the credential of the edge in `X-Adit-Edge`.',
  crossOrigin: false,
  groups: {
    keys: 'Verification of API keys, and their revocations.',
    requests: 'Authorization of proxied requests.',
    tunnels: 'Names and ports of tunnels, and which tunnels are open.',
    usage: 'Usage reports.',
    hosts: 'Host names of workspaces and their tunnels.',
    description: DESCRIPTION_GROUP,
  },
}

const deviceDocument: ApiDocument = {
  title: 'Adit device authorization',
  version: '1',
  description: `The device authorization grant (RFC 8628): a terminal gets an API key that a signed-in user
approves in the browser. \`adit login\` uses it. Any OAuth client that supports this grant works; clients are
not registered, and the access token is an API key of the approved workspace.`,
  crossOrigin: false,
  groups: {
    device: 'Codes for a sign-in, and the API key after its approval.',
    description: DESCRIPTION_GROUP,
  },
}

const oauthDocument: ApiDocument = {
  title: 'Adit sign-in of agents',
  version: '1',
  description: `How an agent gets a key for \`/mcp\` (OAuth 2.1): the authorization code flow with PKCE, and the
registration of clients that have no metadata document. The authorization endpoint is the page
\`/authorize\`. Pages of other origins may call these operations if the operator allows them with
\`ADIT_MCP_ORIGINS\`.`,
  crossOrigin: false,
  groups: {
    oauth: 'Registration of clients, and keys for agents.',
    description: DESCRIPTION_GROUP,
  },
}

const dashboardDocument: ApiDocument = {
  title: 'Adit dashboard API',
  version: '1',
  description: `The API of the dashboard, for signed-in users. It may change with any release; programs use
the API under \`/api/v1\` with an API key.

Writes are accepted from the dashboard's own origin only.`,
  credential: 'The session cookie of a signed-in user.',
  cookie: 'adit.session_token',
  crossOrigin: false,
  hasWebhooks: true,
  groups: {
    'sign-in': 'Signing in.',
    links: 'Invitation and password reset links. Each works once, within 24 hours.',
    session: 'The current session.',
    account: 'The account of the signed-in user.',
    'two-factor': 'Two-factor authentication of the signed-in user.',
    workspace: 'A workspace of the signed-in user.',
    workspaces: 'Creation of workspaces.',
    settings: 'Name and policy of the workspace, and archiving it.',
    keys: 'API keys of the workspace.',
    'key-requests': 'Requests of members for API keys (variant B).',
    notices: 'Messages to admins and owners.',
    quotas: 'Quotas of the workspace, and how much of each is used.',
    tunnels: 'Open tunnels of the workspace.',
    edges: 'Edges that have open tunnels of the workspace.',
    names: 'Tunnel names of the workspace, and their access rules.',
    webhooks: 'Webhook endpoints of the workspace, and the events that they receive.',
    devices: 'Terminals that ask for an API key.',
    agents: 'Agents that ask for a key for `/mcp`.',
    usage: 'Traffic through the tunnels of the workspace.',
    audit: 'The audit log of the workspace.',
    members: 'Members of the workspace and their roles.',
    invitations: 'Open invitations to the workspace.',
    description: DESCRIPTION_GROUP,
  },
}

export const apis = {
  publicA: { name: 'api', prefix: '/api/v1', operations: variants.A, document: publicDocument('A') },
  publicB: { name: 'api', prefix: '/api/v1', operations: variants.B, document: publicDocument('B') },
  workspace: {
    name: 'workspace',
    prefix: '/workspace/v1',
    operations: workspaceOperations,
    document: workspaceDocument,
  },
  edge: { name: 'edge', prefix: '/edge/v1', operations: edgeOperations, document: edgeDocument },
  device: { name: 'device', prefix: '/device', operations: deviceOperations, document: deviceDocument },
  oauth: { name: 'oauth', prefix: '/oauth', operations: oauthOperations, document: oauthDocument },
  dashboard: {
    name: 'dashboard',
    prefix: '/dashboard/api',
    operations: dashboardOperations,
    document: dashboardDocument,
  },
  health: { name: 'health', prefix: '', operations: healthOperations },
} as const satisfies Record<string, Api>

export type ServedApi = (typeof apis)[keyof typeof apis]
