// Keeps a job's page up to date while the job goes on. Without it the page is as it was when it was asked for.
"use strict";
const card = document.querySelector("[data-live]");
const states = { ended: 1, failed: 1, cancelled: 1 };
let pause = 2000;

function put(id, text) {
  const place = document.getElementById(id);
  if (place && text && place.textContent !== text) place.textContent = text;
}

async function look() {
  try {
    const answer = await fetch(card.dataset.live, { headers: { Accept: "application/json" } });
    if (answer.ok) {
      const job = await answer.json();
      if (states[job.state]) return location.reload();
      put("sentence", job.sentence);
      put("progress", job.progress);
      put("attempt", String(job.attempt || "none yet"));
      const badge = document.querySelector("#badge .badge");
      if (badge) badge.lastChild.textContent = ` ${job.state}`;
      pause = 2000;
    } else pause = Math.min(pause * 2, 30000);
  } catch {
    pause = Math.min(pause * 2, 30000);
  }
  setTimeout(look, pause);
}

if (card) setTimeout(look, pause);
