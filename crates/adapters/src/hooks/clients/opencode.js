// Surehand for opencode, written by `surehand init`. It hands what opencode's tools are about to do, and what they did, to the program
// `surehand hook opencode`, and does as it is told: a call that is denied fails with the reason, and what the model should know is put
// below what the tool printed. If the program is missing, fails or takes too long, opencode goes on as if this were not here.
import { spawn } from "node:child_process"

const PROGRAM = "surehand"
const PATIENCE_MS = 5000
const TOOLS = new Set(["read", "edit", "multiedit", "write", "apply_patch", "patch", "bash", "grep"])

let missing = false

function ask(event, message) {
  return new Promise((resolve) => {
    if (missing) return resolve(null)
    let child
    let timer
    const done = (answer) => {
      clearTimeout(timer)
      resolve(answer)
    }
    try {
      child = spawn(PROGRAM, ["hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        done(null)
      }, PATIENCE_MS)
      let said = ""
      child.on("error", (error) => {
        missing = error.code === "ENOENT"
        done(null)
      })
      child.stdin.on("error", () => {})
      child.stdout.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (piece) => (said += piece))
      child.on("close", () => {
        try {
          done(said ? JSON.parse(said) : null)
        } catch {
          done(null)
        }
      })
      child.stdin.end(JSON.stringify(message))
    } catch {
      done(null)
    }
  })
}

export const Surehand = async ({ client, directory }) => {
  const showPerson = (answer) => {
    if (typeof answer?.person !== "string") return
    Promise.resolve(client?.tui?.showToast?.({ body: { message: answer.person, variant: "warning" } })).catch(() => {})
  }
  // Not every version says the arguments again when the tool has run.
  const asked = new Map()
  return {
    "tool.execute.before": async (input, output) => {
      if (!TOOLS.has(input?.tool)) return
      const args = output?.args
      asked.set(input.callID, args)
      const answer = await ask("tool.execute.before", { session: input.sessionID, directory, tool: input.tool, args })
      if (typeof answer?.deny === "string" && answer.deny) {
        asked.delete(input.callID)
        throw new Error(answer.deny)
      }
    },
    "tool.execute.after": async (input, output) => {
      if (!TOOLS.has(input?.tool)) return
      const args = input.args ?? asked.get(input.callID)
      asked.delete(input.callID)
      const answer = await ask("tool.execute.after", {
        session: input.sessionID,
        directory,
        tool: input.tool,
        args,
        output: output?.output,
        loaded: output?.metadata?.loaded,
      })
      showPerson(answer)
      if (typeof answer?.context === "string" && typeof output?.output === "string") {
        output.output += "\n\n" + answer.context
      }
    },
    event: async ({ event }) => {
      if (event?.type !== "session.created" && event?.type !== "session.compacted") return
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      await ask(event.type, { session, directory })
    },
  }
}
