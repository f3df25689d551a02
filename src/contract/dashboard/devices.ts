// Approval of sign-ins from a terminal, on the page /device.
import Type from 'typebox'
import { Instant, Slug, UtcTimestamp, WorkspaceName } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

const UserCode = Type.String({
  pattern: '^[A-Za-z -]{8,20}$',
  description: 'The code that the terminal shows. Case, spaces and hyphens do not matter.',
  examples: ['BCDF-GHJK'],
  'x-rule': 'must be the eight letters that the terminal shows',
})

const states = ['pending', 'approved', 'denied', 'consumed', 'failed'] as const

const device = {
  code: Type.String({ description: 'The code as the terminal shows it.' }),
  deviceName: Type.String({ description: 'Host name that the device has sent; it may be false.' }),
  address: Type.String({ description: 'IP address that the request came from.' }),
  requestedAt: Instant,
  expiresAt: Instant,
  state: Type.Unsafe<(typeof states)[number]>({
    type: 'string',
    enum: [...states],
    description:
      '`consumed`: the device has its key. `failed`: it was approved, but the user could no longer create ' +
      'keys when it polled.',
  }),
  reason: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Why it has failed; otherwise null.',
  }),
}

const Device = Type.Object(device, { title: 'Device' })

const exampleDevice = {
  code: 'BCDF-GHJK',
  deviceName: 'anns-laptop',
  address: '192.0.2.7',
  requestedAt: '2026-11-15T10:02:11.000Z',
  expiresAt: '2026-11-15T10:12:11.000Z',
  state: 'pending' as const,
  reason: null,
}

const response = (description: string, state: (typeof states)[number]) =>
  ({ status: 200, description, schema: Device, example: { ...exampleDevice, state } }) as const

const CODE_BODY = Type.Object({ code: UserCode }, { title: 'UserCode' })

const readDevice = operation({
  id: 'devices.read',
  method: 'POST',
  path: '/devices/read',
  access: 'user',
  summary: 'Find the device with a code',
  description:
    'Returns what asks for an API key, without approving it. 404 if the code is invalid, has expired, or was ' +
    'approved or denied by another user. Wrong codes are limited per user and per network.',
  body: CODE_BODY,
  response: {
    status: 200,
    description: 'The device.',
    schema: Type.Object(
      {
        ...device,
        workspaces: Type.Array(
          Type.Object({
            slug: Slug,
            name: WorkspaceName,
            keyDaysMax: Type.Unsafe<number | null>({
              type: ['integer', 'null'],
              description: 'The longest life of a new API key in days; null if it is unlimited.',
            }),
          }),
          { description: 'Workspaces in which the user may create API keys.' },
        ),
      },
      { title: 'DeviceRequestForUser' },
    ),
    example: { ...exampleDevice, workspaces: [{ slug: 'acme', name: 'Acme', keyDaysMax: null }] },
  },
  faults: ['not_found', 'rate_limited'],
})

const approveDevice = operation({
  id: 'devices.approve',
  method: 'POST',
  path: '/workspaces/{workspace}/devices',
  access: 'admin',
  summary: 'Approve a device',
  description:
    'The device gets an API key of the workspace with its next poll, if the user is still signed in and may ' +
    'create keys then.',
  params: Type.Object(InWorkspace),
  body: Type.Object(
    {
      code: UserCode,
      expiresAt: Type.Optional(
        UtcTimestamp({
          description:
            'When the key expires, rounded up to a second; if absent, as late as the policy allows.',
        }),
      ),
    },
    { title: 'DeviceApproval', ...STRICT },
  ),
  response: response('Approved.', 'approved'),
  faults: ['conflict', 'rate_limited'],
})

const denyDevice = operation({
  id: 'devices.deny',
  method: 'POST',
  path: '/devices/deny',
  access: 'user',
  summary: 'Deny a device',
  description: 'The device is told with its next poll, and its code cannot be approved any more.',
  body: CODE_BODY,
  response: response('Denied.', 'denied'),
  faults: ['not_found', 'conflict', 'rate_limited'],
})

export const deviceApprovalOperations = [readDevice, approveDevice, denyDevice] as const
