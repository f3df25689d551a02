// The sign-in of agents: /oauth/register and /oauth/token. The callers have no credentials yet, so both are
// limited per network.
import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { DEVICE_GRANT } from '../../../contract/device.ts'
import { CODE_GRANT } from '../../../contract/oauth.ts'
import { exchangeCode } from '../../domain/agents/codes.ts'
import type { AgentSignIn } from '../../domain/agents/requests.ts'
import type { Services } from '../../domain/context.ts'
import type { NodeCounters } from '../limits/counters.ts'
import { createLoginThrottle } from '../limits/login-throttle.ts'
import { perNetwork } from '../limits/sign-in-limits.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { createDevicePoll, rejected } from './device.ts'
import { checkOrigin, type McpOriginOptions, PREFLIGHT_HEADERS } from './mcp-origin.ts'
import { createOpenApiDocument } from './openapi-document.ts'

type Callers = { anyone: undefined; device: { address: string } }

interface OAuthOptions extends McpOriginOptions {
  services: Services
  agents: AgentSignIn
  counters: NodeCounters
}

const REGISTRATIONS_PER_NETWORK = 30
const EXCHANGES_PER_NETWORK = 100

export function registerOAuth(server: FastifyInstance, options: OAuthOptions): void {
  const { services, agents, counters, baseUrl } = options
  const api = apis.oauth
  const throttle = createLoginThrottle(counters)
  const poll = createDevicePoll(services, counters)
  const handlers: Handlers<Callers, (typeof api.operations)[number]> = {
    'oauth.register': async ({ address }, { client_name: name, redirect_uris: redirectUris }) => {
      await throttle.consume(perNetwork('client', address, REGISTRATIONS_PER_NETWORK))
      const client = agents.clients.register({ name, redirectUris })
      if (!client) return INVALID_REDIRECT_URI
      return {
        client_id: client.id,
        client_name: client.name,
        redirect_uris: client.redirectUris,
        token_endpoint_auth_method: 'none',
        grant_types: [CODE_GRANT],
        response_types: ['code'],
      }
    },
    'oauth.token': async ({ address }, input) => {
      if (input.grant_type === DEVICE_GRANT) return poll({ deviceCode: input.device_code ?? '', address })
      if (input.grant_type !== CODE_GRANT)
        return rejected('unsupported_grant_type', `grant_type must be ${CODE_GRANT} or ${DEVICE_GRANT}.`)
      await throttle.consume(perNetwork('agent', address, EXCHANGES_PER_NETWORK))
      const { code, client_id: clientId, redirect_uri: redirectUri, code_verifier: codeVerifier } = input
      if (!code || !clientId || !redirectUri || !codeVerifier)
        return rejected('invalid_request', 'code, client_id, redirect_uri and code_verifier are required.')
      const exchange = { code, clientId, redirectUri, codeVerifier, resource: input.resource, address }
      const result = await exchangeCode(services, agents, exchange)
      if ('error' in result) return rejected(result.error, result.description)
      const { token, expiresAt, managesKeys } = result.key
      return {
        access_token: token,
        token_type: 'Bearer',
        expires_in: Math.floor((Date.parse(expiresAt) - services.clock()) / 1000),
        scope: managesKeys ? 'mcp manage-keys' : 'mcp',
      }
    },
    'description.read': createOpenApiDocument(api, baseUrl),
  }
  for (const { method, path } of api.operations)
    if (method === 'POST')
      server.options(api.prefix + path, { config: { surface: api.name } }, (request, reply) => {
        checkOrigin(request, reply, options)
        return reply.code(204).headers(PREFLIGHT_HEADERS).send()
      })
  registerOperations<Callers, typeof api>(server, api, handlers, {
    baseUrl,
    authenticate: (request, reply) => {
      checkOrigin(request, reply, options)
      return { address: request.clientAddress ?? '' }
    },
  })
}

const INVALID_REDIRECT_URI = {
  error: 'invalid_redirect_uri',
  error_description:
    'At least one of redirect_uris is required. Each must be an https URL, an http URL of localhost, 127.0.0.1 ' +
    'or [::1], or have a private-use scheme with a period, and have no fragment, no user and no parameter of ' +
    'the response. Together they may have at most 2,000 characters.',
} as const
