// Users of the dashboard API, each with a cookie jar, as a browser sends it.
import { inviteByOperator } from '../../../src/server/domain/accounts/users.ts'
import type { Role } from '../../../src/server/store/accounts/members.ts'
import {
  operator,
  readResponse,
  serve,
  type TestResponse,
  type TestServer,
  type TestServerOptions,
  toJson,
} from '../api/server.ts'
import type { Test } from '../cleanup.ts'
import { generateCode } from './authenticator.ts'

export const PASSWORD = 'correct horse battery staple'

export interface TestBrowser {
  cookies: Map<string, string>
  /** The Set-Cookie headers of the last response. */
  setCookies: string[]
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<TestResponse>
  get(path: string): Promise<TestResponse>
  post(path: string, body?: unknown): Promise<TestResponse>
  remove(path: string): Promise<TestResponse>
}

/** `origin`: the Origin header, if it differs from the server's URL. */
export function openBrowser(url: string, origin = url): TestBrowser {
  const cookies = new Map<string, string>()
  const browser: TestBrowser = {
    cookies,
    setCookies: [],
    async call(method, path, body, headers) {
      const response = await fetch(`${url}/dashboard/api${path}`, {
        method,
        redirect: 'manual',
        headers: {
          cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          ...(method !== 'GET' && { origin }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: toJson(body) }),
      })
      browser.setCookies = response.headers.getSetCookie()
      for (const cookie of browser.setCookies) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
        if (/max-age=0/i.test(cookie)) cookies.delete(name)
        else cookies.set(name, value)
      }
      return readResponse(response)
    },
    get: (path) => browser.call('GET', path),
    post: (path, body = {}) => browser.call('POST', path, body),
    remove: (path) => browser.call('DELETE', path),
  }
  return browser
}

/** The fragment of a new invitation link. */
export const linkFor = async (server: TestServer, email: string, role: Role, workspace = 'acme') =>
  (await inviteByOperator(server.services, operator, { email, role, workspace })).secret

/** Adds a member to a workspace and signs in. */
export async function addMember(server: TestServer, name: string, role: Role, workspace = 'acme') {
  const email = `${name.toLowerCase()}@example.com`
  const browser = openBrowser(
    server.url,
    server.config.baseUrl ? new URL(server.config.baseUrl).origin : server.url,
  )
  const link = await linkFor(server, email, role, workspace)
  const used = await browser.post('/links/redeem', { link, name, password: PASSWORD })
  if (used.status !== 200) throw new Error(used.text)
  const { user } = (await browser.get('/session')).json
  return { ...browser, browser, email, name, id: user.id as string }
}

/** A server whose workspace is owned by Ann. */
export async function serveWithOwner(t: Test, options: TestServerOptions) {
  const server = await serve(t, options)
  return { server, ann: await addMember(server, 'Ann', 'owner') }
}

export const signIn = (browser: TestBrowser, email: string, password = PASSWORD) =>
  browser.post('/sign-in', { email, password })

export async function enableTwoFactor(browser: TestBrowser): Promise<void> {
  const { json: setup } = await browser.post('/account/two-factor', { password: PASSWORD })
  const confirmed = await browser.post('/account/two-factor/confirm', { code: generateCode(setup.secret) })
  if (confirmed.status !== 200) throw new Error(confirmed.text)
}
