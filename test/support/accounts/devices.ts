// Devices that ask for an API key (RFC 8628), as any OAuth client does.
import { readResponse, type TestResponse } from '../api/server.ts'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

export async function postForm(
  url: string,
  path: string,
  form: Record<string, string> | [string, string][] | string,
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  const response = await fetch(`${url}/device${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
  })
  return readResponse(response)
}

export const poll = (url: string, deviceCode: string) =>
  postForm(url, '/token', { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: 'test' })

export async function startDevice(url: string, deviceName = 'anns-laptop') {
  const { status, json, text } = await postForm(url, '/authorize', {
    client_id: 'test',
    device_name: deviceName,
  })
  if (status !== 200) throw new Error(text)
  return { deviceCode: json.device_code as string, userCode: json.user_code as string, json }
}
