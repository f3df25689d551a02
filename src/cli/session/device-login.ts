// Sign-in with the browser: the device authorization grant (RFC 8628) of the server. The user approves in the
// dashboard, and this machine gets an API key of its own.

import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { TEXT_CHARS_MAX } from '../../contract/limits.ts'
import { cleanText } from '../../contract/text.ts'
import { createFetch } from '../../lib/net/proxy/fetch.ts'
import { ProxyError } from '../../lib/net/proxy/tunnel.ts'
import { ResponseTooLarge, readText } from '../../lib/net/response-text.ts'
import { messageLine } from '../../lib/net/untrusted-text.ts'
import { readProxies } from '../../server/config/environment.ts'
import { abortOnSignal } from '../abort-on-signal.ts'
import { hasKeyFormat, proxyFailed } from '../api.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'
import { bold, type Text, yellow } from '../style.ts'
import { openBrowser } from './open-browser.ts'

const CLIENT = 'adit-cli'
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const TIMEOUT_MS = 10_000
/** What `slow_down` adds, by the RFC. */
const SLOWER_MS = 5_000
/** Limits on what a server may ask for. */
const INTERVAL_S_MAX = 60
const LIFETIME_S_MAX = 3_600
/** The last poll is this long after the deadline, when the code has expired at the server, too. */
const EXPIRED_MS = 1_000
const PAGE_CHARS_MAX = 500
const RESPONSE_BYTES_MAX = 64 * 1024

export interface DeviceKey {
  apiKey: string
  keyId: string
  label: string
  approvedBy: string
}

interface Reply {
  status: number
  body: Record<string, unknown>
}

/** Earlier versions of the server do not have it. */
export async function supportsDeviceLogin(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const send = createFetch(readProxies())
  const response = await send(`${url}/device/openapi.json`, { redirect: 'manual', signal }).catch((error) => {
    if (error instanceof ProxyError) throw throughProxy(error)
    return null
  })
  await response?.body?.cancel()
  return response?.status === 200
}

const throughProxy = (error: ProxyError) =>
  proxyFailed(error, `The server cannot be reached: ${error.message}.`)

export async function signInWithBrowser(url: string, io: Io): Promise<DeviceKey> {
  const { signal, release } = abortOnSignal()
  try {
    const codes = await start(url, signal)
    io.info([
      ...pagePrompt(url, codes.page),
      codes.page.href,
      '\n\nApprove only if the page shows this code: ',
      bold(codes.userCode),
      '\n',
    ])
    const wait = () => io.progress('Waiting for approval. Press Ctrl-C to cancel.')
    wait()
    const onRequested = (reason: string) => {
      io.progress('')
      io.info(reason)
      wait()
    }
    return await waitForKey(url, codes, { signal, onRequested })
  } catch (error) {
    throw signal.aborted ? new CommandError('canceled', 'Canceled.') : error
  } finally {
    io.progress('')
    release()
  }
}

/** A page of another host is not opened automatically: a server could send its users anywhere. */
function pagePrompt(url: string, page: URL): Text[] {
  const { hostname } = new URL(url)
  if (page.hostname !== hostname)
    return [
      yellow('!'),
      ` ${hostname} wants you to sign in at another host. If you trust ${page.hostname}, open this page:\n\n  `,
    ]
  return openBrowser(page.href)
    ? ['Opening your browser. If it does not open, go to:\n\n  ']
    : ['Open this page in a browser:\n\n  ']
}

type Codes = Awaited<ReturnType<typeof start>>

async function start(url: string, signal: AbortSignal) {
  const name = cleanText(hostname(), TEXT_CHARS_MAX)
  const reply = await post(`${url}/device/authorize`, { client_id: CLIENT, device_name: name }, signal)
  if (reply.status !== 200) throw toError(reply)
  const { device_code: deviceCode, user_code: userCode, verification_uri_complete: page } = reply.body
  const pageUrl = webPage(page, url)
  if (typeof deviceCode !== 'string' || !isUserCode(userCode) || !pageUrl) throw unreadable()
  return {
    deviceCode,
    userCode,
    page: pageUrl,
    intervalMs: secondsToMs(reply.body.interval, INTERVAL_S_MAX),
    deadline: performance.now() + secondsToMs(reply.body.expires_in, LIFETIME_S_MAX),
  }
}

/** The URL comes from the server and may be opened. If the server uses https, the page must too. */
function webPage(text: unknown, server: string): URL | undefined {
  const url = typeof text === 'string' && text.length <= PAGE_CHARS_MAX ? URL.parse(text) : null
  if (!url || url.username || url.password) return undefined
  const isWeb = url.protocol === 'https:' || (url.protocol === 'http:' && server.startsWith('http:'))
  return isWeb ? url : undefined
}

/** The code is from the server too, and printed. */
const isUserCode = (code: unknown): code is string =>
  typeof code === 'string' && /^[A-Z0-9-]{4,20}$/.test(code)

const secondsToMs = (value: unknown, max: number) =>
  Math.min(Math.max(typeof value === 'number' ? value : 1, 1), max) * 1_000

interface Waiting {
  signal: AbortSignal
  /**
   * Called once if the user may not create keys, and has requested one: an admin or owner has to approve it.
   */
  onRequested: (reason: string) => void
}

/**
 * No response, 429 and 5xx are retried with growing delays, until the code has expired.
 */
async function waitForKey(
  url: string,
  { deviceCode, intervalMs, deadline }: Codes,
  { signal, onRequested }: Waiting,
): Promise<DeviceKey> {
  const form = { grant_type: GRANT, device_code: deviceCode, client_id: CLIENT }
  let delayMs = intervalMs
  let isRequested = false
  // The last poll is after the deadline, so that the server says what to do next.
  while (performance.now() < deadline) {
    const untilExpiredMs = deadline + EXPIRED_MS - performance.now()
    await sleep(Math.min(delayMs, untilExpiredMs), undefined, { signal })
    const reply = await post(`${url}/device/token`, form, signal).catch((error) => {
      if (error instanceof CommandError && error.code === 'proxy_rejected') throw error
      return undefined
    })
    if (signal.aborted) break
    if (reply?.status === 200) return toKey(reply)
    if (reply?.body.error === 'slow_down') delayMs += SLOWER_MS
    else if (!reply || reply.status === 429 || reply.status >= 500)
      delayMs = Math.min(2 * delayMs, INTERVAL_S_MAX * 1_000)
    else if (reply.body.error !== 'authorization_pending') throw toError(reply)
    else if (reply.body.request === 'pending' && !isRequested) {
      isRequested = true
      onRequested(toError(reply).message)
    }
  }
  throw new CommandError('expired_token', 'The code has expired.')
}

/** It is printed as part of a command. */
const isKeyId = (id: unknown): id is string => typeof id === 'string' && /^tok_\w{1,40}$/.test(id)

function toKey({ body }: Reply): DeviceKey {
  const { access_token: apiKey, key_id: keyId, label, approved_by: approvedBy } = body
  if (typeof apiKey !== 'string' || !hasKeyFormat(apiKey) || !isKeyId(keyId)) throw unreadable()
  if (typeof label !== 'string' || typeof approvedBy !== 'string') throw unreadable()
  return { apiKey, keyId, label: messageLine(label), approvedBy: messageLine(approvedBy) }
}

async function post(url: string, form: Record<string, string>, signal: AbortSignal): Promise<Reply> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const response = await createFetch(readProxies())(url, {
      method: 'POST',
      body: new URLSearchParams(form),
      redirect: 'manual',
      signal: AbortSignal.any([signal, timeout]),
    })
    const body: unknown = JSON.parse(await readText(response, RESPONSE_BYTES_MAX))
    return { status: response.status, body: Object(body) as Reply['body'] }
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ResponseTooLarge) throw unreadable()
    if (error instanceof ProxyError) throw throughProxy(error)
    throw new CommandError('unreachable', 'The server cannot be reached. Try again.')
  }
}

const unreadable = () => new CommandError('unreadable', 'The server sent an invalid response to the sign-in.')

/** OAuth describes an error in `error_description`, other errors of the server have a `message`. */
function toError({ status, body }: Reply): CommandError {
  const { error, error_description: description, message, request } = body
  const text = [description, message].find((each) => typeof each === 'string')
  // The code has expired, but the request for the key is open.
  const code = request === 'pending' ? 'request_pending' : error
  return new CommandError(
    typeof code === 'string' ? code : 'unreadable',
    typeof text === 'string' ? messageLine(text) : `The server responded with status ${status}.`,
  )
}
