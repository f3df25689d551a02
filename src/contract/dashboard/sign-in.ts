// Signing in: with a password and a two-factor code, with an identity provider, or with an invitation or
// reset link.

import Type from 'typebox'
import { Email, ObjectOrNull, OneOf, ok, Slug, TextOrNull, UserName, WorkspaceName } from '../fields.ts'
import { CODE_CHARS, PASSWORD_CHARS } from '../limits.ts'
import { operation, READS_ONLY, type Role } from '../operation.ts'

/** An existing password; the rules of `NewPassword` do not apply to it. */
export const Password = Type.String({ maxLength: 1_000 })

export const NewPassword = Type.String({ minLength: PASSWORD_CHARS.min, maxLength: PASSWORD_CHARS.max })

export const Code = Type.String({
  pattern: `^[0-9A-Za-z -]{${CODE_CHARS.min},${CODE_CHARS.max}}$`,
  examples: ['492039'],
  'x-rule': 'must be a six-digit code of the authenticator app, or a recovery code',
})

const Link = Type.String({
  pattern: '^[\\w-]{20,100}$',
  'x-rule': 'must be the part of the link after #',
})

/** Result of a sign-in step. */
const Next = Type.Object({ next: OneOf(['signed_in', 'code']) })

const signInActions = ['user.signed-in', 'user.sign-in-failed'] as const

const RedirectParameter = Type.Optional(Type.String({ maxLength: 4_000 }))

export const signInOperations = [
  operation({
    id: 'sign-in.options',
    method: 'GET',
    path: '/sign-in',
    access: 'browser',
    summary: 'Get sign-in options',
    response: ok({ sso: TextOrNull, resetByMail: Type.Boolean(), isSignedIn: Type.Boolean() }),
  }),
  operation({
    id: 'sign-in.password',
    method: 'POST',
    path: '/sign-in',
    access: 'browser',
    audit: signInActions,
    summary: 'Sign in with a password',
    body: Type.Object({ email: Email, password: Password }),
    response: { status: 200, schema: Next },
    faults: ['unauthorized', 'rate_limited'],
  }),
  operation({
    id: 'sign-in.code',
    method: 'POST',
    path: '/sign-in/code',
    access: 'browser',
    audit: signInActions,
    summary: 'Sign in with a two-factor code',
    body: Type.Object({ code: Code }),
    response: { status: 200, schema: Next },
    faults: ['unauthorized', 'rate_limited'],
  }),
  operation({
    id: 'sign-in.sso',
    method: 'POST',
    path: '/sign-in/sso',
    access: 'browser',
    audit: { none: 'The return from the identity provider is recorded.' },
    summary: 'Begin single sign-on',
    description: 'With the link of an invitation, the sign-in accepts it.',
    body: Type.Object({ link: Type.Optional(Link) }),
    response: ok({ url: Type.String() }),
    faults: ['not_found', 'rate_limited'],
  }),
  operation({
    id: 'sign-in.return',
    method: 'GET',
    path: '/sign-in/sso/return',
    access: 'browser',
    audit: [...signInActions, 'user.identity-linked', 'user.joined'],
    summary: 'Complete single sign-on',
    query: Type.Object({
      code: RedirectParameter,
      state: RedirectParameter,
      error: RedirectParameter,
      error_description: RedirectParameter,
      iss: RedirectParameter,
    }),
    response: { status: 302, schema: Type.Object({ location: Type.String() }), asHeaders: true },
    faults: ['not_found', 'rate_limited'],
  }),
  operation({
    id: 'sign-in.request-reset',
    method: 'POST',
    path: '/sign-in/forgot-password',
    access: 'browser',
    audit: ['user.reset-link-created'],
    summary: 'Request a password reset link',
    body: Type.Object({ email: Email }),
    response: ok({ asked: Type.Literal(true) }),
    faults: ['not_found', 'rate_limited'],
  }),
  operation({
    id: 'links.read',
    method: 'POST',
    path: '/links/read',
    access: 'browser',
    audit: READS_ONLY,
    summary: 'Inspect a link',
    body: Type.Object({ link: Link }),
    response: ok({
      purpose: OneOf(['join', 'reset']),
      email: TextOrNull,
      workspace: ObjectOrNull(Type.Object({ slug: Slug, name: WorkspaceName })),
      role: Type.Unsafe<Role | null>({ type: ['string', 'null'] }),
      /** Choose a password, sign in to the existing account first, or accept as the signed-in user. */
      step: OneOf(['choose', 'sign_in', 'accept']),
      isNew: Type.Boolean(),
    }),
    faults: ['not_found'],
  }),
  operation({
    id: 'links.redeem',
    method: 'POST',
    path: '/links/redeem',
    access: 'browser',
    audit: ['user.joined', 'user.password-reset', 'user.signed-in'],
    summary: 'Redeem a link',
    body: Type.Object({
      link: Link,
      email: Type.Optional(Email),
      name: Type.Optional(UserName),
      password: Type.Optional(NewPassword),
    }),
    response: { status: 200, schema: Next },
    faults: ['not_found', 'unauthorized', 'conflict', 'rate_limited'],
  }),
] as const
