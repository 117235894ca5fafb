// Fills the lists, orders the activities as it is told, and answers the function; everything else is CAP's own.
const { cds } = globalThis; // CAP puts itself there before it loads this file
const { INSERT } = cds.ql;

export class ecmsync extends cds.ApplicationService {
  async init() {
    this.on("userorgroup", ({ data }) => [
      { id: data.id, idAsNumber: "9007199254740993", name: `of ${data.repository}`, isAdministrator: false },
    ]);
    const { activities, orderBy } = cds.env.contract;
    this.before("READ", "synchronizationactivities", ({ query: { SELECT } }) => {
      if (orderBy.length > 0) SELECT.orderBy = orderBy;
    });
    cds.once("served", async () => {
      const { synchronizationactivities, syncconflictdetails, syncjobs } = this.entities;
      const fill = (length, toRow) => Array.from({ length }, (_, index) => toRow(index + 1));
      await INSERT.into(synchronizationactivities).entries(
        fill(activities, (n) => ({ activityId: n, state: `s${n % 3}` })),
      );
      await INSERT.into(syncconflictdetails).entries(fill(200, (n) => ({ conflictId: n })));
      await INSERT.into(syncjobs).entries(fill(3, (n) => ({ syncJobId: n, name: `Job ${n}` })));
    });
    return super.init();
  }
}
