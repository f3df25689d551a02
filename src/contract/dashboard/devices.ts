// Approval of sign-ins from a terminal, on the page /device.

import Type from 'typebox'
import {
  Instant,
  IntegerOrNull,
  OneOf,
  ok,
  Slug,
  TextOrNull,
  UtcTimestamp,
  WorkspaceName,
} from '../fields.ts'
import { USER_CODE_CHARS_MAX } from '../limits.ts'
import { operation, READS_ONLY, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

const UserCode = Type.String({
  pattern: `^[A-Za-z -]{8,${USER_CODE_CHARS_MAX}}$`,
  examples: ['BCDF-GHJK'],
  'x-rule': 'must be the eight letters that the terminal shows',
})

const device = {
  code: Type.String(),
  /** The host name that the device has sent, which may be false. */
  deviceName: Type.String(),
  address: Type.String(),
  requestedAt: Instant,
  expiresAt: Instant,
  /** `consumed`: the device has its key. `failed`: the user could no longer create keys when it polled. */
  state: OneOf(['pending', 'approved', 'denied', 'consumed', 'failed']),
  failureReason: TextOrNull,
  /** Whether the device waits until an admin or owner has approved the request for its key. */
  awaitsKeyApproval: Type.Boolean(),
}

const response = { status: 200, schema: Type.Object(device) } as const

const CODE_BODY = Type.Object({ code: UserCode })

export const deviceApprovalOperations = [
  operation({
    id: 'devices.read',
    method: 'POST',
    path: '/devices/read',
    access: 'user',
    audit: READS_ONLY,
    summary: 'Find the device with a code',
    body: CODE_BODY,
    response: ok({
      ...device,
      workspaces: Type.Array(
        Type.Object({
          slug: Slug,
          name: WorkspaceName,
          keyDaysMax: IntegerOrNull,
          /** Why the user cannot get a key there, and what to do. */
          obstacle: TextOrNull,
          /** Whether an admin or owner has to approve it, because the user may not create keys. */
          needsRequest: Type.Boolean(),
        }),
      ),
    }),
    faults: ['not_found', 'rate_limited'],
  }),
  operation({
    id: 'devices.approve',
    method: 'POST',
    path: '/workspaces/{workspace}/devices',
    access: 'member',
    audit: ['device.approved', 'key.requested'],
    summary: 'Approve a device',
    params: Type.Object(InWorkspace),
    body: Type.Object({ code: UserCode, expiresAt: Type.Optional(UtcTimestamp()) }, STRICT),
    response,
    faults: ['conflict', 'rate_limited'],
  }),
  operation({
    id: 'devices.deny',
    method: 'POST',
    path: '/devices/deny',
    access: 'user',
    audit: ['device.denied'],
    summary: 'Deny a device',
    body: CODE_BODY,
    response,
    faults: ['not_found', 'conflict', 'rate_limited'],
  }),
] as const
