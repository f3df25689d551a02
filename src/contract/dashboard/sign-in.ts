// Signing in: with a password and a two-factor code, with an identity provider, or with an invitation or
// reset link.
import Type from 'typebox'
import { Email, Slug, UserName, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'

export const PASSWORD_CHARS = { min: 8, max: 128 } as const

/** An existing password; the rules of `NewPassword` do not apply to it. */
export const Password = Type.String({ maxLength: 1_000, description: 'The password.' })

export const NewPassword = Type.String({
  minLength: PASSWORD_CHARS.min,
  maxLength: PASSWORD_CHARS.max,
  description: '8 to 128 characters; common passwords are rejected.',
})

export const Code = Type.String({
  pattern: '^[0-9A-Za-z -]{6,20}$',
  description: 'Six-digit code of the authenticator app, or a recovery code.',
  examples: ['492039'],
  'x-rule': 'must be a six-digit code of the authenticator app, or a recovery code',
})

const Link = Type.String({
  pattern: '^[\\w-]{20,100}$',
  description: 'The part of the link after `#`.',
  'x-rule': 'must be the part of the link after #',
})

/** Result of a sign-in step. */
const Next = Type.Object(
  {
    next: Type.Unsafe<'signed_in' | 'code'>({
      type: 'string',
      enum: ['signed_in', 'code'],
      description: '`signed_in`, or `code` if a two-factor code is required.',
    }),
  },
  { title: 'SignInStep' },
)

const readOptions = operation({
  id: 'sign-in.options',
  method: 'GET',
  path: '/sign-in',
  access: 'browser',
  summary: 'Get sign-in options',
  description: 'Returns the sign-in methods of this server other than a password.',
  response: {
    status: 200,
    description: 'The sign-in options.',
    schema: Type.Object(
      {
        sso: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Host name of the identity provider; null if none is configured.',
        }),
        resetByMail: Type.Boolean({ description: 'Whether passwords can be reset by mail.' }),
      },
      { title: 'SignInOptions' },
    ),
    example: { sso: 'id.example.com', resetByMail: true },
  },
  faults: [],
})

const signIn = operation({
  id: 'sign-in.password',
  method: 'POST',
  path: '/sign-in',
  access: 'browser',
  summary: 'Sign in with a password',
  description:
    'The response does not reveal whether the address has an account. Failed attempts are limited per ' +
    'account and per network.',
  body: Type.Object({ email: Email, password: Password }, { title: 'Credentials' }),
  response: {
    status: 200,
    description: 'The password is correct.',
    schema: Next,
    example: { next: 'signed_in' },
  },
  faults: ['unauthorized', 'rate_limited'],
})

const signInCode = operation({
  id: 'sign-in.code',
  method: 'POST',
  path: '/sign-in/code',
  access: 'browser',
  summary: 'Sign in with a two-factor code',
  description: 'Completes a sign-in within ten minutes after the password. A code works once.',
  body: Type.Object({ code: Code }, { title: 'TwoFactorCode' }),
  response: { status: 200, description: 'Signed in.', schema: Next, example: { next: 'signed_in' } },
  faults: ['unauthorized', 'rate_limited'],
})

const beginSso = operation({
  id: 'sign-in.sso',
  method: 'POST',
  path: '/sign-in/sso',
  access: 'browser',
  summary: 'Begin single sign-on',
  description: 'Returns the URL of the identity provider to redirect to. 404 if none is configured.',
  response: {
    status: 200,
    description: 'The URL to redirect to.',
    schema: Type.Object({ url: Type.String() }, { title: 'SsoStart' }),
    example: { url: 'https://id.example.com/auth?…' },
  },
  faults: ['not_found', 'rate_limited'],
})

const Returned = Type.Optional(Type.String({ maxLength: 4_000 }))

const returnFromSso = operation({
  id: 'sign-in.return',
  method: 'GET',
  path: '/sign-in/sso/return',
  access: 'browser',
  summary: 'Complete single sign-on',
  description:
    'The redirect URI of the identity provider. Redirects to the dashboard, or to the sign-in page on ' +
    'failure.',
  query: Type.Object({
    code: Returned,
    state: Returned,
    error: Returned,
    error_description: Returned,
    iss: Returned,
  }),
  response: {
    status: 302,
    description: 'Redirect to the dashboard.',
    schema: Type.Object({ location: Type.String() }),
    example: { location: '/' },
    asHeaders: true,
  },
  faults: ['not_found', 'rate_limited'],
})

const requestReset = operation({
  id: 'sign-in.request-reset',
  method: 'POST',
  path: '/sign-in/forgot-password',
  access: 'browser',
  summary: 'Request a password reset link',
  description:
    'Sends a link by mail if the address has an account; the response is the same if not. 404 if mail is ' +
    'not configured.',
  body: Type.Object({ email: Email }, { title: 'ResetRequest' }),
  response: {
    status: 200,
    description: 'The request was accepted.',
    schema: Type.Object({ asked: Type.Literal(true) }, { title: 'ResetRequested' }),
    example: { asked: true },
  },
  faults: ['not_found', 'rate_limited'],
})

const readLink = operation({
  id: 'links.read',
  method: 'POST',
  path: '/links/read',
  access: 'browser',
  summary: 'Inspect a link',
  description:
    'Returns the purpose of a link without using it. 404 if the link is invalid, expired or already used.',
  body: Type.Object({ link: Link }, { title: 'Link' }),
  response: {
    status: 200,
    description: 'The purpose of the link.',
    schema: Type.Object(
      {
        purpose: Type.Unsafe<'join' | 'reset'>({
          type: 'string',
          enum: ['join', 'reset'],
          description: '`join`: invitation to a workspace. `reset`: password reset.',
        }),
        email: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Recipient; null if the recipient enters an address.',
        }),
        workspace: Type.Unsafe<{ slug: string; name: string } | null>({
          type: ['object', 'null'],
          properties: { slug: Slug, name: WorkspaceName },
          required: ['slug', 'name'],
        }),
        role: Type.Unsafe<'member' | 'admin' | 'owner' | null>({ type: ['string', 'null'] }),
        step: Type.Unsafe<'choose' | 'sign_in' | 'accept'>({
          type: 'string',
          enum: ['choose', 'sign_in', 'accept'],
          description:
            '`choose`: choose a password, and a name for a new account. `sign_in`: sign in to the existing ' +
            'account first. `accept`: accept the invitation as the signed-in user.',
        }),
        isNew: Type.Boolean({ description: 'Whether a new account will be created, which needs a name.' }),
      },
      { title: 'LinkFacts' },
    ),
    example: {
      purpose: 'join',
      email: 'bob@example.com',
      workspace: { slug: 'acme', name: 'Acme' },
      role: 'member',
      step: 'choose',
      isNew: true,
    },
  },
  faults: ['not_found'],
})

const redeemLink = operation({
  id: 'links.redeem',
  method: 'POST',
  path: '/links/redeem',
  access: 'browser',
  summary: 'Redeem a link',
  description:
    'Joins the workspace or sets the password, and signs in. A new account needs `name` and `password`, ' +
    'and `email` if the link has no recipient; a reset needs `password`; signed-in users accept an ' +
    'invitation without further fields.',
  body: Type.Object(
    {
      link: Link,
      email: Type.Optional(Email),
      name: Type.Optional(UserName),
      password: Type.Optional(NewPassword),
    },
    { title: 'LinkRedemption' },
  ),
  response: { status: 200, description: 'Done.', schema: Next, example: { next: 'signed_in' } },
  faults: ['not_found', 'unauthorized', 'conflict', 'rate_limited'],
})

export const signInOperations = [
  readOptions,
  signIn,
  signInCode,
  beginSso,
  returnFromSso,
  requestReset,
  readLink,
  redeemLink,
] as const
