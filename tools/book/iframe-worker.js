// SPDX-License-Identifier: Apache-2.0

// A worker for pages that are opened from disk, where browsers refuse `new Worker`.
// The script runs in a hidden frame. The search of the book uses it; elsewhere nothing is replaced.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inner = this.frame.contentWindow
      inner.document.open()
      inner.document.write("<!doctype html><html><body></body></html>")
      inner.document.close()
      inner.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      inner.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve())
      this.loaded = this.load(url)
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        this.frame.contentDocument.body.appendChild(script)
      })
    }

    postMessage(data) {
      this.loaded.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
      )
    }

    terminate() {
      this.frame.remove()
    }
  }
}
