// The device authorization grant (RFC 8628) for `adit login`: a terminal without a browser session gets an
// API key that a signed-in user approves on the page /device. Requests are forms and errors have the codes of
// the RFC, so that standard OAuth clients work.
import Type from 'typebox'
import { readDescription } from './description.ts'
import { Label, OneOf, Slug, TokenId, UserName } from './fields.ts'
import { operation } from './operation.ts'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** Sent by every OAuth client. */
const ClientId = Type.Optional(
  Type.String({ maxLength: 200, description: 'Not used: clients are not registered.' }),
)

const authorize = operation({
  id: 'device.authorize',
  method: 'POST',
  path: '/authorize',
  access: 'device',
  audit: { none: 'The request belongs to no workspace until it is approved.' },
  summary: 'Request a device code and a user code',
  description:
    'Begins a sign-in. The user opens `verification_uri_complete`, compares the code with `user_code` and ' +
    'approves, while the device polls `POST /device/token`.',
  oauth: 'form',
  body: Type.Object(
    {
      client_id: ClientId,
      device_name: Type.Optional(
        Type.Unsafe<string>({ ...Label, description: 'Host name of the device, the label of its API key.' }),
      ),
    },
    { title: 'DeviceRequest', examples: [{ client_id: 'adit-cli', device_name: 'anns-laptop' }] },
  ),
  response: {
    status: 200,
    description: 'The codes.',
    schema: Type.Object(
      {
        device_code: Type.String({ description: 'Secret of the device, for polling.' }),
        user_code: Type.String({ description: 'Code that the device shows, and the user compares.' }),
        verification_uri: Type.String({ description: 'Page where the user enters the code.' }),
        verification_uri_complete: Type.String({ description: 'The same page with the code filled in.' }),
        expires_in: Type.Integer({ description: 'Lifetime of both codes in seconds.' }),
        interval: Type.Integer({ description: 'Seconds to wait between two polls.' }),
      },
      { title: 'DeviceCodes' },
    ),
    example: {
      device_code: 'adit_device_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
      user_code: 'BCDF-GHJK',
      verification_uri: 'https://adit.example.com/device',
      verification_uri_complete: 'https://adit.example.com/device?code=BCDF-GHJK',
      expires_in: 600,
      interval: 5,
    },
    secret: true,
  },
})

/** Errors of RFC 8628, section 3.5, RFC 6749, section 5.2, and RFC 8707, section 2. */
const grantErrors = [
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'invalid_request',
  'invalid_grant',
  'invalid_target',
  'unsupported_grant_type',
] as const
export type GrantError = (typeof grantErrors)[number]

export const grantRejection = {
  schema: Type.Object(
    {
      error: OneOf(grantErrors),
      error_description: Type.String({ description: 'Human-readable explanation.' }),
      request: Type.Optional(
        OneOf(
          ['pending'],
          'The user may not create keys and has requested one, which an admin or owner has not approved ' +
            'yet. If the code has expired, start again when it is approved.',
        ),
      ),
    },
    { title: 'GrantError' },
  ),
  example: {
    error: 'authorization_pending',
    error_description: 'Not approved yet. Poll again after the interval.',
  },
}

const exchange = operation({
  id: 'device.token',
  method: 'POST',
  path: '/token',
  access: 'device',
  audit: ['key.created', 'device.failed'],
  summary: 'Poll for the API key',
  description:
    'Returns the API key once the user has approved. The key is created by this request, for the user who ' +
    'has approved, if they may still create keys. The same response is repeated for a minute, in case it ' +
    'was lost.',
  oauth: 'form',
  body: Type.Object(
    {
      grant_type: Type.String({ maxLength: 200, description: `\`${DEVICE_GRANT}\`.` }),
      device_code: Type.String({ maxLength: 200, description: 'From `POST /device/authorize`.' }),
      client_id: ClientId,
    },
    {
      title: 'DevicePoll',
      examples: [
        {
          grant_type: DEVICE_GRANT,
          device_code: 'adit_device_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
          client_id: 'adit-cli',
        },
      ],
    },
  ),
  response: {
    status: 200,
    description: 'The API key.',
    schema: Type.Object(
      {
        access_token: Type.String({ description: 'The API key.' }),
        token_type: Type.Literal('Bearer'),
        expires_in: Type.Optional(
          Type.Integer({ description: 'Lifetime of the key in seconds; absent if it does not expire.' }),
        ),
        key_id: TokenId,
        label: Label,
        workspace: Slug,
        approved_by: UserName,
      },
      { title: 'DeviceKey' },
    ),
    example: {
      access_token: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
      token_type: 'Bearer',
      expires_in: 7_776_000,
      key_id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
      label: 'anns-laptop',
      workspace: 'acme',
      approved_by: 'Ann Example',
    },
    secret: true,
    rejection: grantRejection,
  },
})

export const deviceOperations = [authorize, exchange, readDescription] as const
