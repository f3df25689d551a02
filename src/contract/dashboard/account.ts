// The account of the signed-in user: sessions, name, password and two-factor authentication.
import Type from 'typebox'
import { Email, Id, Instant, ObjectOrNull, ok, Slug, UserName, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'
import { Role } from './members.ts'
import { Archive } from './settings.ts'
import { Code, NewPassword, Password } from './sign-in.ts'

const done = ok({ done: Type.Literal(true) })

const PasswordConfirmation = Type.Object({ password: Password })

export const accountOperations = [
  operation({
    id: 'session.read',
    method: 'GET',
    path: '/session',
    access: 'user',
    summary: 'Get the current session',
    response: ok({
      user: Type.Object({
        id: Id,
        name: UserName,
        email: Email,
        hasPassword: Type.Boolean(),
        hasTwoFactor: Type.Boolean(),
      }),
      canCreateWorkspaces: Type.Boolean(),
      workspaces: Type.Array(
        Type.Object({
          slug: Slug,
          name: WorkspaceName,
          role: Role,
          needsTwoFactor: Type.Boolean(),
          archive: ObjectOrNull(Archive),
        }),
      ),
    }),
  }),
  operation({
    id: 'session.end',
    method: 'POST',
    path: '/sign-out',
    access: 'user',
    audit: ['user.signed-out'],
    endsAccess: true,
    summary: 'Sign out',
    response: {
      status: 200,
      // The URL contains an ID token.
      secret: true,
      schema: Type.Object({
        done: Type.Literal(true),
        providerUrl: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'URL that ends the session at the identity provider; null if there is nothing to end.',
        }),
      }),
    },
  }),
  operation({
    id: 'session.end-all',
    method: 'DELETE',
    path: '/account/sessions',
    access: 'user',
    audit: ['user.signed-out-everywhere'],
    endsAccess: true,
    summary: 'Sign out everywhere',
    response: done,
  }),
  operation({
    id: 'account.rename',
    method: 'POST',
    path: '/account/name',
    access: 'user',
    audit: ['user.renamed'],
    summary: 'Change the display name',
    body: Type.Object({ name: UserName }),
    response: done,
  }),
  operation({
    id: 'account.password',
    method: 'POST',
    path: '/account/password',
    access: 'user',
    audit: ['user.password-changed', 'user.confirmation-failed'],
    endsAccess: true,
    summary: 'Change the password',
    body: Type.Object({ current: Password, password: NewPassword }),
    response: done,
    faults: ['rate_limited'],
  }),
  operation({
    id: 'account.sessions',
    method: 'GET',
    path: '/account/sessions',
    access: 'user',
    summary: 'List sessions',
    response: ok({
      sessions: Type.Array(
        Type.Object({
          id: Id,
          isThis: Type.Boolean(),
          createdAt: Instant,
          expiresAt: Instant,
          address: Type.String(),
          agent: Type.String(),
        }),
      ),
    }),
  }),
  operation({
    id: 'account.end-session',
    method: 'DELETE',
    path: '/account/sessions/{id}',
    access: 'user',
    audit: ['user.session-ended'],
    endsAccess: true,
    summary: 'End a session',
    params: Type.Object({ id: Id }),
    response: done,
    faults: ['not_found'],
  }),
  operation({
    id: 'two-factor.begin',
    method: 'POST',
    path: '/account/two-factor',
    access: 'user',
    audit: ['user.two-factor-started', 'user.confirmation-failed'],
    summary: 'Begin the setup of two-factor authentication',
    body: PasswordConfirmation,
    response: {
      status: 200,
      schema: Type.Object({
        uri: Type.String(),
        secret: Type.String(),
        recoveryCodes: Type.Array(Type.String()),
      }),
      secret: true,
    },
    faults: ['rate_limited', 'conflict'],
  }),
  operation({
    id: 'two-factor.confirm',
    method: 'POST',
    path: '/account/two-factor/confirm',
    access: 'user',
    audit: ['user.two-factor-enabled', 'user.confirmation-failed'],
    summary: 'Confirm the setup of two-factor authentication',
    body: Type.Object({ code: Code }),
    response: done,
    faults: ['rate_limited', 'conflict'],
  }),
  operation({
    id: 'two-factor.disable',
    method: 'POST',
    path: '/account/two-factor/disable',
    access: 'user',
    audit: ['user.two-factor-disabled', 'user.confirmation-failed'],
    summary: 'Disable two-factor authentication',
    body: PasswordConfirmation,
    response: done,
    faults: ['rate_limited'],
  }),
] as const
