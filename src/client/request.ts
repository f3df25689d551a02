// A route of the contract, `POST /tokens/{id}`, and what it takes → what to send.

export interface Outgoing {
  method: string
  /** With its query, relative to where the operations begin. */
  path: string
  body: string | undefined
}

/** Parameters go into the path; the rest into the query, or into the body of a POST. */
export function outgoing(route: string, given: object | undefined): Outgoing {
  const [method = '', pattern = ''] = route.split(' ')
  const fields: Record<string, unknown> = { ...given }
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(fields[name]))
    delete fields[name]
    return value
  })
  const rest = Object.entries(fields).filter(([, value]) => value !== undefined)
  if (method === 'POST')
    return { method, path, body: rest.length > 0 ? JSON.stringify(Object.fromEntries(rest)) : undefined }
  const query = new URLSearchParams(rest.map(([name, value]) => [name, String(value)]))
  return { method, path: query.size > 0 ? `${path}?${query}` : path, body: undefined }
}
