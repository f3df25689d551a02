// Configuration of better-auth: features, table names and cookies.
import type { BetterAuthOptions } from 'better-auth'
import { APIError } from 'better-auth/api'
import { twoFactor } from 'better-auth/plugins/two-factor'
import { PASSWORD_CHARS } from '../../contract/dashboard/sign-in.ts'
import type { Services } from '../domain/context.ts'
import { findUser } from '../store/accounts/users.ts'
import { ambientDb, storeAdapter } from './adapter.ts'
import { ADDRESS_HEADER } from './browser.ts'
import { ownEndpoints } from './endpoints.ts'

export interface AuthSettings {
  services: Services
  /** Signs cookies and encrypts TOTP secrets; must be the same on every node. */
  secret: string
  /** Public URL of the server. */
  baseUrl: string
  onProblem: (level: string, message: string) => void
}

/** Idle timeout of a session. */
const IDLE_TIMEOUT_S = 24 * 60 * 60
/** Minimum interval between updates of a session in use. */
const TOUCH_INTERVAL_S = 5 * 60
/** Timeout between the password and the code. */
const CODE_TIMEOUT_S = 10 * 60

const COOKIES = [
  'session_token',
  'two_factor',
  'dont_remember',
  'trust_device',
  'session_data',
  'account_data',
]

const snake = (...names: string[]) =>
  Object.fromEntries(
    names.map((name) => [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]),
  )

export function authOptions({ services, secret, baseUrl, onProblem }: AuthSettings) {
  const { origin, pathname, protocol } = new URL(baseUrl)
  const isHttps = protocol === 'https:'
  const prefix = pathname.replace(/\/$/, '')
  return {
    appName: 'Adit',
    secret,
    baseURL: origin,
    basePath: `${prefix}/dashboard/api/auth`,
    trustedOrigins: [origin],
    telemetry: { enabled: false },
    logger: { log: (level: string, message: string) => onProblem(level, message) },
    database: storeAdapter(services.store),
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: PASSWORD_CHARS.min,
      maxPasswordLength: PASSWORD_CHARS.max,
      ...(services.passwordHasher && { password: services.passwordHasher }),
    },
    user: { modelName: 'users', fields: snake('emailVerified', 'createdAt', 'updatedAt') },
    session: {
      modelName: 'sessions',
      fields: snake('expiresAt', 'createdAt', 'updatedAt', 'ipAddress', 'userAgent', 'userId'),
      expiresIn: IDLE_TIMEOUT_S,
      updateAge: TOUCH_INTERVAL_S,
      cookieCache: { enabled: false },
    },
    account: {
      modelName: 'identities',
      fields: snake(
        'accountId',
        'providerId',
        'userId',
        'accessToken',
        'refreshToken',
        'idToken',
        'accessTokenExpiresAt',
        'refreshTokenExpiresAt',
        'createdAt',
        'updatedAt',
      ),
      accountLinking: { enabled: false },
    },
    verification: {
      modelName: 'verifications',
      fields: snake('expiresAt', 'createdAt', 'updatedAt'),
      storeIdentifier: 'hashed',
      // The maintenance job deletes expired rows.
      disableCleanup: true,
    },
    // Attempts are limited by http/auth before better-auth is called.
    rateLimit: { enabled: false },
    databaseHooks: {
      session: {
        create: {
          before: async ({ userId }: { userId: string }) => {
            const user = await findUser(ambientDb(services.store), userId)
            if (!user || user.disabled_at !== null) throw new APIError('UNAUTHORIZED')
          },
        },
      },
    },
    advanced: {
      // It would add a second prefix to the cookie names.
      useSecureCookies: false,
      defaultCookieAttributes: { secure: isHttps, httpOnly: true, sameSite: 'lax', path: '/' },
      cookies: Object.fromEntries(
        COOKIES.map((name) => [name, { name: `${isHttps ? '__Host-' : ''}adit.${name}` }]),
      ),
      database: { generateId: ({ model }: { model: string }) => services.ids(idPrefixes[model] ?? 'vrf') },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
    },
    plugins: [
      ownEndpoints,
      twoFactor({
        issuer: 'Adit',
        twoFactorCookieMaxAge: CODE_TIMEOUT_S,
        schema: {
          user: { fields: snake('twoFactorEnabled') },
          twoFactor: {
            modelName: 'two_factors',
            fields: snake('backupCodes', 'userId', 'failedVerificationCount', 'lockedUntil'),
          },
        },
      }),
    ],
  } satisfies BetterAuthOptions
}

const idPrefixes: Record<string, 'usr' | 'ses' | 'idn' | 'tfa'> = {
  user: 'usr',
  session: 'ses',
  account: 'idn',
  twoFactor: 'tfa',
}
