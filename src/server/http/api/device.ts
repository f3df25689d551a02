// Device authorization for `adit login`: /device/authorize and /device/token. The callers have no credentials
// yet, so starting is limited per network, and polling per device.

import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { DEVICE_GRANT, type GrantError } from '../../../contract/device.ts'
import { isBlank } from '../../../contract/text.ts'
import type { Services } from '../../domain/context.ts'
import { startDevice } from '../../domain/devices/authorizations.ts'
import { type GrantedKey, type PollResult, pollDevice } from '../../domain/devices/device-keys.ts'
import { rejectCrossSite, requestOrigin } from '../auth/csrf.ts'
import type { NodeCounters } from '../limits/counters.ts'
import { createLoginThrottle } from '../limits/login-throttle.ts'
import { POLL_INTERVAL_S } from '../limits/poll-times.ts'
import { perNetwork } from '../limits/sign-in-limits.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { createOpenApiDocument } from './openapi-document.ts'

interface DeviceCaller {
  address: string
  /** The public URL of the server. */
  url: string
}

type Callers = { anyone: undefined; device: DeviceCaller }

interface DeviceApiOptions {
  services: Services
  counters: NodeCounters
  /** The configured public URL; undefined if the server is reached where it listens. */
  baseUrl: string | undefined
}

const STARTS_PER_NETWORK = 30
const UNNAMED = 'unnamed device'

export function registerDeviceApi(
  server: FastifyInstance,
  { services, counters, baseUrl }: DeviceApiOptions,
): void {
  const throttle = createLoginThrottle(counters)
  const poll = createDevicePoll(services, counters)
  const handlers: Handlers<Callers, (typeof apis.device.operations)[number]> = {
    'device.authorize': async ({ address, url }, { device_name: name }) => {
      await throttle.consume(perNetwork('device', address, STARTS_PER_NETWORK))
      const deviceName = name === undefined || isBlank(name) ? UNNAMED : name.trim()
      const { deviceCode, userCode, expiresInS } = await startDevice(services, { deviceName, address })
      return {
        device_code: deviceCode,
        user_code: userCode,
        verification_uri: `${url}/device`,
        verification_uri_complete: `${url}/device?code=${userCode}`,
        expires_in: expiresInS,
        interval: POLL_INTERVAL_S,
      }
    },
    'device.token': ({ address }, { grant_type: grantType, device_code: deviceCode }) =>
      grantType === DEVICE_GRANT
        ? poll({ deviceCode, address })
        : rejected('unsupported_grant_type', `grant_type must be ${DEVICE_GRANT}.`),
    'description.read': createOpenApiDocument(apis.device, baseUrl),
  }
  registerOperations<Callers, typeof apis.device>(server, apis.device, handlers, {
    baseUrl,
    authenticate: (request) => {
      // Otherwise a page of another site could use up the limits of the network that opens it.
      rejectCrossSite(request, baseUrl)
      return {
        address: request.clientAddress ?? '',
        url: baseUrl ?? requestOrigin(request, undefined) ?? '',
      }
    },
  })
}

/** The device grant of a token endpoint. */
export const createDevicePoll =
  (services: Services, counters: NodeCounters) => async (poll: { deviceCode: string; address: string }) => {
    if (await counters.isPollTooSoon(poll.deviceCode))
      return rejected('slow_down', 'Polled too soon. Wait 5 seconds longer between polls.')
    return describeResult(await pollDevice(services, poll), services.clock())
  }

export const rejected = (error: GrantError, description: string) => ({
  error,
  error_description: description,
})

function describeResult(result: PollResult, now: number) {
  switch (result.state) {
    case 'granted':
      return describeKey(result.key, now)
    case 'pending':
      return rejected('authorization_pending', 'Not approved yet. Poll again after the interval.')
    case 'requested':
      return {
        ...rejected(result.isExpired ? 'expired_token' : 'authorization_pending', result.reason),
        request: 'pending' as const,
      }
    case 'denied':
    case 'failed':
      return rejected('access_denied', result.reason)
    case 'expired':
      return rejected('expired_token', 'The code has expired. Start again.')
    case 'unknown':
      return rejected('invalid_grant', 'Unknown or already used device code. Start again.')
  }
}

const describeKey = ({ id, token, label, expiresAt, workspace, approvedBy }: GrantedKey, now: number) => ({
  access_token: token,
  token_type: 'Bearer' as const,
  ...(expiresAt !== null && { expires_in: Math.max(0, Math.floor((Date.parse(expiresAt) - now) / 1000)) }),
  key_id: id,
  label,
  workspace,
  approved_by: approvedBy,
})
